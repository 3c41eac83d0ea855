"""Reads engine files of any form, profiles, trtexec's times and ONNX models."""
