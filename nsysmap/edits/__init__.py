"""From a finding to an edit of the ONNX model: patterns that cost time, proofs that they can be
rewritten, and the script that does it.
"""
