"""What fits this program and this version of TensorRT: commands, lines of code, conditions."""
