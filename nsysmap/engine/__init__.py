"""TensorRT's files: the layers of an engine, the tensors between them, and what each layer has to do.

The only room that knows TensorRT's JSON and logs.  `reader.read_engine` opens a file; `tables.engine_tables` says what follows from it.
"""
