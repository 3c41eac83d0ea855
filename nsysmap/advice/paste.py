"""What to do, in words, and how: for each change and each rule one table of lines to paste, or a
sentence if no line does it.

Options of trtexec and the names of APIs are those of the versions of NVIDIA/TensorRT, onnx-tensorrt
(the ONNX parser), Torch-TensorRT, ONNX Runtime and TensorRT-LLM that go with that version of
TensorRT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nsysmap.advice.program import (
    CUDA,
    ONNX_RUNTIME,
    OTHER,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
)
from nsysmap.advice.ways import (
    ANY,
    API_CPP,
    API_PYTHON,
    JULIA,
    LLM_CPP,
    ONNX,
    RTX,
    RTX_CPP,
    RTX_ONNX_RUNTIME,
    RTX_PYTHON,
    AdvisedChange,
    ByEvidence,
    Way,
)
from nsysmap.core.changes import CHANGES as DECLARED


def _line(text: str, *since: int, release: str = "", brief: str = "") -> Way:
    return Way(text, since, release=release, brief=brief)


def _say(text: str, *since: int, brief: str = "") -> Way:
    return Way(text, since, paste=False, brief=brief)


_EXPORT = "trtexec --onnx=MODEL.onnx --profilingVerbosity=detailed --exportLayerInfo=engine.json"
_RTX_LAYERS = _line(
    "tensorrt_rtx --onnx=MODEL.onnx --profilingVerbosity=detailed --dumpLayerInfo > engine.log"
)
_INSPECTED = (
    'open("engine.json", "w").write(engine.create_engine_inspector()'
    ".get_engine_information(trt.LayerInformationFormat.JSON))"
)
_GRAPH = (
    "cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); {}"
    " cudaStreamEndCapture(stream, &graph);"
)
_TORCH_GRAPH = "with torch.cuda.graph(graph): out = model(x)"
_WHOLE_PASS = _line(f"{_TORCH_GRAPH}  # no blocking copies")
_LLM_GRAPH = (
    "knobs = ExtendedRuntimePerfKnobConfig(cuda_graph_mode=True); LLM(engine,"
    " extended_runtime_perf_knob_config=knobs)"
)
_COMPILED = _line('model = torch.compile(model, mode="reduce-overhead")  # from PyTorch 2 on')
_ENQUEUED = _line(_GRAPH.format("context->enqueueV3(stream);"), 8, 5)
_ENQUEUED_V2 = _line(_GRAPH.format("context->enqueueV2(bindings, stream, nullptr);"))
_CURRENT = "torch.cuda.current_stream().cuda_stream"
_PYTHON_GRAPH = (
    _line(
        f"with torch.cuda.graph(graph): context.execute_async_v3({_CURRENT})  # or"
        " cudaStreamBeginCapture() of cuda-python",
        8,
        5,
        brief="with torch.cuda.graph(g, stream=s): context.execute_async_v3(s.cuda_stream)",
    ),
    _line(
        f"with torch.cuda.graph(graph): context.execute_async_v2(bindings, {_CURRENT})  # or"
        " cudaStreamBeginCapture() of cuda-python",
        brief=f"with torch.cuda.graph(graph): context.execute_async_v2(bindings, {_CURRENT})",
    ),
)
_RTX_PYTHON_GRAPH = _line(
    "runtime_config = engine.create_runtime_config(); runtime_config.cuda_graph_strategy ="
    " trt.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE; context ="
    " engine.create_execution_context(runtime_config)  # from RTX 1.2 on",
    brief="runtime_config.cuda_graph_strategy = trt.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE",
)
_RTX_GRAPH = _line(
    "runtimeConfig = engine->createRuntimeConfig();"
    " runtimeConfig->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);"
    " context = engine->createExecutionContext(runtimeConfig);  // from RTX 1.2 on",
    brief="runtimeConfig->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);",
)
_ALL_OF_PYTHON = {
    TORCH_TENSORRT: (_WHOLE_PASS,),
    TORCH_ENGINES: (_WHOLE_PASS,),
    PYTORCH: (_COMPILED,),
}
_PROVIDER = 'providers=[("TensorrtExecutionProvider", {{"{}": {}}})]'
_RTX_PROVIDER = 'providers=[("NvTensorRTRTXExecutionProvider", {{"{}": {}}})]'
# a context runs one at a time
_TWO_MODELS = _line("with torch.cuda.stream(streams[i % 2]): out[i] = models[i % 2](batch[i])")
_TWO_GRAPHS = _line(
    "with torch.cuda.stream(streams[i % 2]): graphs[i % 2].replay()  # each with tensors of its"
    " own",
    brief="with torch.cuda.stream(s[i % 2]): graphs[i % 2].replay()  # own tensors",
)
_LAUNCHED_GRAPHS = _line(
    "cudaGraphLaunch(exec[i % 2], streams[i % 2]);  // each with buffers of its own",
    brief="cudaGraphLaunch(exec[i % 2], streams[i % 2]);  // own buffers each",
)
_OPSET_17 = 'torch.onnx.export(model, inputs, "MODEL.onnx", opset_version=17)'
# from pageable memory the call returns only when the copy is done
_COPY = "cudaMemcpyAsync(next, pinned, bytes, cudaMemcpyHostToDevice, copies);"
_LAYER_NORM = _line("y = torch.nn.functional.layer_norm(x, shape, weight, bias)")
# the first whose compile() takes them; it has TensorRT 8.6
_TORCH_86 = "from Torch-TensorRT 2.2 on"
_PLAIN_NORM = _say("keep casts, reshapes and transposes out of each norm in the model")
_PATTERN = (
    "scale Q or K rather than the scores, use head sizes of a multiple of 8, and keep casts out of"
    " norms"
)
_OLD_REGION = _say(
    "build with TensorRT 10 or later, which fuses more of them; in this version, " + _PATTERN
)
_UNCHAINED = _say(
    "move slices, casts and reshapes out from between these operations in the model",
    brief="move slices, casts and reshapes out from between",
)
_NO_STREAMS = _say("merge the branches: TensorRT has no such streams before 8.6")
_ASYNC = "auto next = std::async(std::launch::async, preprocess, i + 1);"
_LLM_ASYNC = _line("outputs = [llm.generate_async(prompt) for prompt in prompts]")
_LLM_REQUESTS = _say("send more requests at once: the executor runs them together")
_ONE_STREAM = _say("enqueue everything on one stream")
_STREAMS = {
    TENSORRT: (_line("trtexec --onnx=MODEL.onnx --maxAuxStreams=2", 8, 6), _NO_STREAMS),
    API_PYTHON: (
        _line("builder_config.max_aux_streams = 2  # when the engine is built", 8, 6),
        _NO_STREAMS,
    ),
    API_CPP: (
        _line("builderConfig->setMaxAuxStreams(2);  // when the engine is built", 8, 6),
        _NO_STREAMS,
    ),
    **dict.fromkeys(
        (RTX, RTX_ONNX_RUNTIME), (_say("merge the branches in the model into one wider layer"),)
    ),
    ONNX_RUNTIME: (_line(_PROVIDER.format("trt_auxiliary_streams", 2), 8, 6), _NO_STREAMS),
    TORCH_TENSORRT: (
        _line(
            "torch_tensorrt.compile(model, inputs=inputs, max_aux_streams=2)",
            8,
            6,
            release=_TORCH_86,
        ),
        _line("with torch.cuda.stream(side): branch = module(x)"),
    ),
    PYTORCH: (_line("with torch.cuda.stream(side): branch = module(x)"),),
    CUDA: (_line("kernel<<<grid, block, 0, side>>>(...);  // a stream for each branch"),),
    OTHER: (_say("give independent kernels streams (or queues) of their own"),),
    ANY: (_say("merge the branches in the model into one wider layer"),),
}
_BY_API = "in the type and layout of that layer: setAllowedFormats() of the {}"
_INPUT_FORMATS = dict.fromkeys(
    (API_PYTHON, API_CPP, RTX),
    (
        _say(
            "write the input " + _BY_API.format("network's input"),
            brief="write it in that layer's type and layout: setAllowedFormats()",
        ),
    ),
)
_OUTPUT_FORMATS = dict.fromkeys(
    (API_PYTHON, API_CPP, RTX),
    (
        _say(
            "take the output " + _BY_API.format("network's output"),
            brief="take it in that layer's type and layout: setAllowedFormats()",
        ),
    ),
)
_LARGER = _say(
    "export the model with a larger or a dynamic batch, and run it with context.set_input_shape()",
    brief="export with a larger or a dynamic batch; context.set_input_shape()",
)
_AUTOCAST = _line("python -m modelopt.onnx.autocast --onnx_path MODEL.onnx", 10, 12)
_HALF = {
    API_PYTHON: (
        _AUTOCAST,
        _line("builder_config.set_flag(trt.BuilderFlag.FP16)  # when the engine is built"),
    ),
    API_CPP: (
        _AUTOCAST,
        _line("builderConfig->setFlag(nvinfer1::BuilderFlag::kFP16);  // when the engine is built"),
    ),
    ONNX: (_AUTOCAST, _line("trtexec --onnx=MODEL.onnx --fp16")),
    RTX_ONNX_RUNTIME: (_AUTOCAST,),  # the types are those of the model
    ONNX_RUNTIME: (_AUTOCAST, _line(_PROVIDER.format("trt_fp16_enable", True))),
    TORCH_TENSORRT: (
        _line("torch_tensorrt.compile(model.half(), inputs=inputs)", 11),
        _line(
            "torch_tensorrt.compile(model.half(), inputs=inputs, use_explicit_typing=True)",
            10,
            9,
            release="from Torch-TensorRT 2.7 on",
        ),
        _line("torch_tensorrt.compile(model, inputs=inputs, enabled_precisions={torch.half})"),
    ),
    PYTORCH: (_line("model = model.half()"),),
    ANY: (_say("build these layers in FP16 or BF16"),),
}
_TO_HALF = (
    "cast the model to FP16 (python -m modelopt.onnx.autocast); before TensorRT 11, letting the"
    " builder use FP16 does it too"
)
_OPERATOR = 'torch.onnx.export(model, inputs, "MODEL.onnx", opset_version=23, dynamo=True)'
_AT_10_14 = "export to ONNX opset 23, whose Attention {}"
_FROM_10_14, _BY_RTX = "TensorRT 10.14 fuses", "TensorRT for RTX 1.5 builds"
"""What is known of it: TensorRT fuses it since when, with which TensorRT for RTX it was tried
with (docs/fix.md); their versions are not those of one product.
"""
_RTX_GROUPS = (RTX, RTX_PYTHON, RTX_CPP, RTX_ONNX_RUNTIME)
_NOT_IN_A_BRANCH = _say(
    "move it out of the branch of If, in which Attention of ONNX opset 23 does not build", 10, 14
)
_AT_MOST_256 = _say(
    "make heads of at most 256 channels: no kernel fuses wider ones, and Attention of ONNX opset 23"
    " does not build then (NVIDIA/TensorRT issue 4705)"
)
_FOLDED = _line("polygraphy surgeon sanitize MODEL.onnx --fold-constants -o folded.onnx")
_ATTENTION = {
    ONNX: (_line(f"{_OPERATOR}  # not for attention in a branch of If", 10, 14), _FOLDED),
    PYTORCH: (_line("y = torch.nn.functional.scaled_dot_product_attention(q, k, v)"),),
    TENSORRT_LLM: (
        _line(
            "trtllm-build --checkpoint_dir=CHECKPOINT --output_dir=ENGINE"
            " --gpt_attention_plugin=auto"
        ),
    ),
    ANY: (
        _say(
            "write the block as one attention operator, in FP16 or BF16, with a head size that is a"
            " multiple of 8",
            brief="write it as one attention operator, in FP16 or BF16",
        ),
    ),
}


def _fused(operator: str, brief: str = "") -> AdvisedChange:
    """How to fuse attention where its operator has a condition, from TensorRT 10.14 on; the
    sentence has a place for the product.
    """
    known = operator.format(_FROM_10_14)
    ways = {
        **_ATTENTION,
        ONNX: (_say(known, 10, 14, brief=brief), _FOLDED),
        **dict.fromkeys(_RTX_GROUPS, (_say(operator.format(_BY_RTX), brief=brief),)),
    }
    return AdvisedChange("fuse attention", ways, unsure=known)


def _by_evidence(
    column: str, title: str, changes: Mapping[str, str], otherwise: str | AdvisedChange
) -> ByEvidence:
    """Sentences by evidence."""
    said = {name: AdvisedChange(title, _model(text)) for name, text in changes.items()}
    return ByEvidence(
        column,
        said,
        AdvisedChange(title, _model(otherwise)) if isinstance(otherwise, str) else otherwise,
    )


def _model(text: str, brief: str = "") -> dict[str, tuple[Way, ...]]:
    """Advice that only a change of the model follows, the same in every program."""
    return {ANY: (_say(text, brief=brief),)}


_WAYS_OF_CHANGES: Mapping[str, Mapping[str, tuple[Way, ...]]] = {
    "cuda-graph": {
        TENSORRT: (
            # from TensorRT 11 on, trtexec does it by default
            _line(_GRAPH.format("context->enqueueV3(stream);"), 11),
            _line("trtexec --loadEngine=MODEL.plan --useCudaGraph"),
            _ENQUEUED,  # where trtexec cannot run the engine
            _ENQUEUED_V2,
        ),
        API_PYTHON: _PYTHON_GRAPH,
        API_CPP: (_ENQUEUED, _ENQUEUED_V2),
        RTX: (_line("tensorrt_rtx --loadEngine=MODEL.plan --rtxCudaGraphStrategy=wholeGraph"),),
        RTX_PYTHON: (_RTX_PYTHON_GRAPH,),
        RTX_CPP: (_RTX_GRAPH,),
        RTX_ONNX_RUNTIME: (_line(_RTX_PROVIDER.format("enable_cuda_graph", True)),),
        ONNX_RUNTIME: (
            _line(_PROVIDER.format("trt_cuda_graph_enable", True), 8, 6),
            _say(
                "use ONNX Runtime 1.15 or later: its TensorRT provider has the option"
                " trt_cuda_graph_enable"
            ),
        ),
        LLM_CPP: (
            _line(
                "knobs.setCudaGraphMode(true);"
                " executorConfig.setExtendedRuntimePerfKnobConfig(knobs);",
                10,
                7,
                release="from TensorRT-LLM 0.16 on",
            ),
            _say("use TensorRT-LLM 0.16 or later: its executor has setCudaGraphMode()"),
        ),
        TENSORRT_LLM: (
            _line(
                _LLM_GRAPH,
                10,
                7,
                release="from TensorRT-LLM 0.16 (1.0: tensorrt_llm._tensorrt_engine.LLM)",
            ),
            _line("GenerationSession(model_config, engine, mapping, cuda_graph_mode=True)"),
        ),
        TORCH_TENSORRT: (
            _line(
                "torch_tensorrt.runtime.set_cudagraphs_mode(True)",
                10,
                3,
                release="from Torch-TensorRT 2.5 on",
            ),
            _line(_TORCH_GRAPH),
        ),
        TORCH_ENGINES: (_line(_TORCH_GRAPH),),
        PYTORCH: (_COMPILED,),
        CUDA: (_line(_GRAPH.format("launch_all(stream);")),),
        JULIA: (_line("CUDA.@captured step!(state)"),),
        OTHER: (
            _say(
                "capture one step from its stream: CUDA.@captured in CUDA.jl,"
                " Stream.begin_capture() in CuPy, the stream of a queue in OpenACC"
            ),
        ),
    },
    "one-graph": {
        **_ALL_OF_PYTHON,
        TENSORRT: (_line(_GRAPH.format("launch_all(stream);")),),
        CUDA: (_line(_GRAPH.format("launch_all(stream);")),),
        ANY: (
            _say(
                "capture all that is launched from one wait to the next in one CUDA graph, what"
                " runs between the engines too",
                brief="capture all from one wait to the next in one CUDA graph",
            ),
        ),
    },
    "two-in-flight": {
        TENSORRT: (
            _line("trtexec --loadEngine=MODEL.plan --infStreams=2 --threads", 8, 6),
            _line("trtexec --loadEngine=MODEL.plan --streams=2 --threads"),
        ),
        API_PYTHON: (
            _line("contexts[i % 2].execute_async_v3(streams[i % 2])  # own buffers each", 8, 5),
            _line("contexts[i % 2].execute_async_v2(bindings[i % 2], streams[i % 2])"),
        ),
        API_CPP: (
            _line(
                "std::thread other(run, contexts[1], streams[1]); run(contexts[0], streams[0]);  //"
                " each with buffers of its own",
                brief="std::thread other(run, contexts[1]); run(contexts[0]);  // own buffers each",
            ),
        ),
        RTX: (_line("tensorrt_rtx --loadEngine=MODEL.plan --infStreams=2"),),
        ONNX_RUNTIME: (_say("run two InferenceSessions, each on its own thread"),),
        TENSORRT_LLM: (_LLM_ASYNC,),
        LLM_CPP: (_LLM_REQUESTS,),
        TORCH_TENSORRT: (_TWO_MODELS,),
        TORCH_ENGINES: (_TWO_MODELS,),
        PYTORCH: (_line("with torch.cuda.stream(streams[i % 2]): out[i] = model(batch[i])"),),
        CUDA: (
            _line(
                "std::thread other(run, streams[1]); run(streams[0]);  // each with buffers of"
                " its own",
                brief="std::thread other(run, streams[1]); run(streams[0]);  // own buffers each",
            ),
        ),
        OTHER: (
            _say("run two steps at once, each on a thread and a stream (or queue) of its own"),
        ),
    },
    "async": {
        ONNX_RUNTIME: (
            _line(
                'run_options.add_run_config_entry("disable_synchronize_execution_providers", "1")'
            ),
        ),
        TENSORRT_LLM: (_LLM_ASYNC,),
        LLM_CPP: (_LLM_REQUESTS,),
        PYTORCH: (_line("torch.cuda.synchronize()  # once, after the last batch"),),
        JULIA: (_line("CUDA.synchronize()  # once, after the last step"),),
        OTHER: (_say("wait for the GPU once, after the last step"),),
        API_PYTHON: (_line("stream.synchronize()  # once, after the last inference"),),
        ANY: (_line("cudaStreamSynchronize(stream);  // once, after the last enqueue"),),
    },
    "pinned-copies": {
        ONNX_RUNTIME: (
            _line(
                'binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x,'
                ' "cuda", 0))'
            ),
        ),
        PYTORCH: (_line('batch = batch.pin_memory().to("cuda", non_blocking=True)'),),
        JULIA: (_line("CUDA.pin(array)  # of the host, once, before the loop"),),
        OTHER: (
            _say(
                "page-lock the host's memory: CUDA.pin() in CUDA.jl, cupyx.empty_pinned() in CuPy,"
                " cuda.pinned_array() in Numba"
            ),
        ),
        API_PYTHON: (
            _line(
                "host = torch.empty(shape, dtype=dtype, pin_memory=True)  # or"
                " pagelocked_empty() of PyCUDA",
                brief="host = torch.empty(shape, dtype=dtype, pin_memory=True)",
            ),
        ),
        ANY: (_line("cudaHostRegister(buffer, bytes, cudaHostRegisterDefault);"),),
    },
    "no-host-gap": {
        ONNX_RUNTIME: (
            _line(
                "following = executor.submit(preprocess, i + 1)  # a ThreadPoolExecutor, before"
                " session.run()",
                brief="following = executor.submit(preprocess, i + 1)  # before session.run()",
            ),
        ),
        TENSORRT_LLM: (_LLM_ASYNC,),
        LLM_CPP: (_LLM_REQUESTS,),
        PYTORCH: (
            _line(
                "following = executor.submit(preprocess, i + 1)  # a ThreadPoolExecutor, before"
                " model(x)",
                brief="following = executor.submit(preprocess, i + 1)  # before model(x)",
            ),
        ),
        API_PYTHON: (
            _line(
                "following = executor.submit(preprocess, i + 1)  # a ThreadPoolExecutor, before"
                " the inference",
                brief="following = executor.submit(preprocess, i + 1)  # before the inference",
            ),
        ),
        **dict.fromkeys((API_CPP, CUDA), (_line(_ASYNC),)),
        OTHER: (_say("prepare the next step on another thread while the GPU runs this one"),),
        ANY: (_say("prepare the next one on another thread while the GPU runs this one"),),
    },
    "one-stream": {
        TENSORRT: (_line("trtexec --onnx=MODEL.onnx --maxAuxStreams=0", 8, 6), _ONE_STREAM),
        API_PYTHON: (
            _line("builder_config.max_aux_streams = 0  # when the engine is built", 8, 6),
            _ONE_STREAM,
        ),
        API_CPP: (
            _line("builderConfig->setMaxAuxStreams(0);  // when the engine is built", 8, 6),
            _ONE_STREAM,
        ),
        RTX: (_ONE_STREAM,),
        RTX_ONNX_RUNTIME: (_ONE_STREAM,),
        ONNX_RUNTIME: (_line(_PROVIDER.format("trt_auxiliary_streams", 0), 8, 6), _ONE_STREAM),
        TORCH_TENSORRT: (
            _line(
                "torch_tensorrt.compile(model, inputs=inputs, max_aux_streams=0)",
                8,
                6,
                release=_TORCH_86,
            ),
            _say("use one stream"),
        ),
        PYTORCH: (_line("torch.cuda.set_stream(torch.cuda.default_stream())"),),
        CUDA: (_line("kernel<<<grid, block, 0, stream>>>(...);  // one stream for all"),),
        ANY: (_ONE_STREAM,),
    },
    "aux-streams": _STREAMS,
    "drop-layers": _model(
        "give neighbouring layers one type and one layout: NHWC for FP16 and INT8, channels in"
        " multiples of 8 or 32",
        "give neighbouring layers one type and one layout",
    ),
    "join-kernels": {
        ONNX: (_line(_OPSET_17, 8, 6), _PLAIN_NORM),
        PYTORCH: (_LAYER_NORM,),
        ANY: (_PLAIN_NORM,),
    },
}

CHANGES: Mapping[str, AdvisedChange] = {
    name: AdvisedChange(
        declared.title,
        _WAYS_OF_CHANGES.get(name) or _model(declared.how),
        around=declared.around_engine,
    )
    for name, declared in DECLARED.items()
}
"""What each change of what-if (the table `whatif`) means in practice."""

TWO_GRAPHS = replace(
    CHANGES["two-in-flight"],
    ways={
        **CHANGES["two-in-flight"].ways,
        TENSORRT: (
            # from TensorRT 11 on, a CUDA graph is its default
            _line("trtexec --loadEngine=MODEL.plan --infStreams=2 --threads", 11),
            _line("trtexec --loadEngine=MODEL.plan --infStreams=2 --useCudaGraph", 8, 6),
            _line("trtexec --loadEngine=MODEL.plan --streams=2 --useCudaGraph"),
        ),
        API_PYTHON: (_TWO_GRAPHS,),
        API_CPP: (_LAUNCHED_GRAPHS,),
        **dict.fromkeys((TORCH_TENSORRT, TORCH_ENGINES, PYTORCH), (_TWO_GRAPHS,)),
        CUDA: (_LAUNCHED_GRAPHS,),
    },
)
"""Instead of `two-in-flight` where inferences run as CUDA graphs: what is predicted is two of
those.
"""

PYTHON_BETWEEN = AdvisedChange("make one CUDA graph of all that Python launches", _ALL_OF_PYTHON)
"""Instead of `one-graph` where what is launched between the engines is PyTorch's."""

COMPILE_THE_REST = AdvisedChange(
    "compile what is launched outside the CUDA graphs too",
    {
        **_ALL_OF_PYTHON,
        PYTORCH: (
            _line(
                'torch.compile(whole_step, mode="reduce-overhead")  # with the loss;'
                " optimizer: capturable=True",
                brief='torch.compile(whole_step, mode="reduce-overhead")  # with the loss',
            ),
        ),
    },
)
"""Instead of `one-graph` and `cuda-graph` where the model is compiled so already."""

_SAMPLED = "nsys profile --{} -t {} -o report {}  # which {}code of the host it is"


def _traced(osrt: bool) -> str:
    """What to trace besides: calls of the operating system where the report has none yet."""
    return "cuda,nvtx" if osrt else "cuda,nvtx,osrt"


def python_alone(*, osrt: bool = False) -> AdvisedChange:
    """Instead of `no-host-gap` where the host's own work is Python's, and no batch is uploaded that
    could be prepared earlier; ``osrt``: calls of the operating system were traced.
    """
    options = ("python-sampling=true", _traced(osrt), "python PROGRAM.py", "Python ")
    ways = {PYTORCH: (_line(_SAMPLED.format(*options)),)}
    return AdvisedChange(CHANGES["no-host-gap"].title, ways, around=True)


_SHORTEN = "shorten the host's own work in the loop"
# nsys takes a sample each 10^6 ns of a thread's time by itself, and 125,000 is the least it accepts
_OFTEN = "sampling-period=125000"


def nothing_to_prepare(
    command: str = "./PROGRAM", *, osrt: bool = False, sampled: bool = False
) -> AdvisedChange:
    """Instead of `no-host-gap` where nothing is copied to or from the GPU while inferences run: no
    data is prepared or taken that another thread could have, the work is the loop's own.
    ``command`` stands for the program; ``sampled``: there are CPU samples, but too few to tell.
    """
    python = _SAMPLED.format("python-sampling=true", _traced(osrt), "python PROGRAM.py", "")
    option = _OFTEN if sampled else "sample=process-tree"
    ways = {
        **dict.fromkeys((API_PYTHON, PYTORCH, ONNX_RUNTIME), (_line(python),)),
        TENSORRT_LLM: (_LLM_ASYNC,),
        LLM_CPP: (_LLM_REQUESTS,),
        ANY: (_line(_SAMPLED.format(option, _traced(osrt), command, "")),),
    }
    return AdvisedChange(_SHORTEN, ways, around=True)


def code_of_the_host(command: str = "./PROGRAM") -> AdvisedChange:
    """The same where CPU samples show whose code the host was in: its functions are looked up."""
    ways = {ANY: (_line(f"perf record -g {command} && perf report  # its functions"),)}
    return AdvisedChange(_SHORTEN, ways, around=True)


WAIT_FOR_RANKS = AdvisedChange(
    "wait less for other MPI ranks",
    {
        ANY: (
            _say(
                "give all ranks equal work, or compute while messages are under way: start them"
                " with MPI_Isend or MPI_Ibarrier, and call MPI_Wait later",
                brief="give all ranks equal work, or compute between MPI_Isend and MPI_Wait",
            ),
        ),
    },
    around=True,
)
"""Instead of `no-host-gap` where CPU samples show that the host waits in MPI: no other thread could
do that.
"""

ALLOCATE_ONCE = AdvisedChange(
    "allocate device memory once, before the loop",
    {
        **dict.fromkeys(
            (API_PYTHON, PYTORCH, ONNX_RUNTIME),
            (_say("keep the device arrays from one step to the next, and write into them"),),
        ),
        OTHER: (_say("keep the device arrays from one step to the next, and write into them"),),
        ANY: (
            _line("static void* buffer = allocate(bytes);  // cudaMalloc once, freed at the end"),
        ),
    },
    around=True,
)
"""Instead of `no-host-gap` where the host allocates or frees device memory meanwhile."""

DATA_LOADER_WORKERS = 4
"""As many as PyTorch's own examples begin with; each prepares another batch meanwhile."""

_LOADED = f"for x in DataLoader(data, num_workers={DATA_LOADER_WORKERS}, pin_memory=True):"
WITH_DATA_LOADER = AdvisedChange(
    CHANGES["no-host-gap"].title,
    {PYTORCH: (_line(_LOADED),)},
    around=True,
)
"""Instead of `no-host-gap` where ranges show that PyTorch's DataLoader prepares the batches."""

EACH_ENGINE = replace(CHANGES["cuda-graph"], title="run each engine as a CUDA graph")
"""Instead of `cuda-graph` where PyTorch has work of its own between engines."""

_LEVEL_5 = {
    TENSORRT: _line("trtexec --onnx=MODEL.onnx --builderOptimizationLevel=5", 8, 6),
    API_PYTHON: _line(
        "builder_config.builder_optimization_level = 5  # when the engine is built", 8, 6
    ),
    API_CPP: _line(
        "builderConfig->setBuilderOptimizationLevel(5);  // when the engine is built", 8, 6
    ),
    ONNX_RUNTIME: _line(_PROVIDER.format("trt_builder_optimization_level", 5), 8, 6),
    TORCH_TENSORRT: _line(
        "torch_tensorrt.compile(model, inputs=inputs, optimization_level=5)",
        8,
        6,
        release=_TORCH_86,
    ),
}
"""How the builder times more tactics."""
_BATCH = AdvisedChange(
    "use a larger batch",
    {
        TENSORRT: (_line("trtexec --onnx=MODEL.onnx --shapes=INPUT:2xDIMS"),),
        API_PYTHON: (_LARGER,),
        API_CPP: (
            _say(
                "export the model with a larger or a dynamic batch, and run it with"
                " context->setInputShape()",
                brief="export with a larger or a dynamic batch; context->setInputShape()",
            ),
        ),
        RTX: (_line("tensorrt_rtx --onnx=MODEL.onnx --shapes=INPUT:2xDIMS"),),
        ONNX_RUNTIME: (_line('session.run(None, {"x": numpy.concatenate([x0, x1])})'),),
        TENSORRT_LLM: (
            _line(
                "trtllm-build --checkpoint_dir=CHECKPOINT --output_dir=ENGINE --max_batch_size=16"
            ),
        ),
        PYTORCH: (_line("out = model(torch.cat([x0, x1]))"),),
        ANY: (_say("give each kernel the work of two requests"),),
    },
    around=True,
)
_WITHOUT_QUANTIZERS = AdvisedChange(
    "compare with the engine without Q/DQ",
    _model("build it in FP16 or BF16 without Q/DQ, and give both captures to nsysmap compare"),
)
RULES: Mapping[str, AdvisedChange | ByEvidence] = {
    "attention-not-fused": ByEvidence(
        "operator",
        {
            "wide": AdvisedChange("fuse attention", {**_ATTENTION, ONNX: (_AT_MOST_256, _FOLDED)}),
            "float": _fused(
                f"cast Q, K and V to FP16 or BF16, and {_AT_10_14}",
                "cast Q, K and V to FP16 or BF16, and export to ONNX opset 23",
            ),
            "mask": _fused(
                f"{_AT_10_14} if the mask is of type bool or of Q's",
                "export to ONNX opset 23, with a mask of type bool or of Q's",
            ),
            "cache": _fused(
                f"{_AT_10_14}, with the KV cache concatenated before it",
                "export to ONNX opset 23, the KV cache concatenated before it",
            ),
            "branch": AdvisedChange(
                "fuse attention", {**_ATTENTION, ONNX: (_NOT_IN_A_BRANCH, _FOLDED)}
            ),
        },
        AdvisedChange(
            "fuse attention",
            _ATTENTION,
            unsure=f"{_AT_10_14.format(_FROM_10_14)}, outside branches of If",
        ),
        most=1,
    ),
    "time-sliced-processes": AdvisedChange(
        "let the processes share the GPU at the same time (CUDA MPS)",
        {ANY: (_line("nvidia-cuda-mps-control -d  # before they start"),)},
    ),
    "norm-split": _by_evidence(
        "written_as",
        "fuse each norm into one kernel",
        {
            "group norm": (
                "a GroupNorm of one group: write it as LayerNorm over the last axis, in that layout"
                " before and behind it"
            ),
            "layer norm": "keep casts, transposes and reshapes out of the norm",
            "another": "write it as LayerNorm, as the model's other norms are",
        },
        AdvisedChange("fuse each norm into one kernel", CHANGES["join-kernels"].ways),
    ),
    "softmax-split": _by_evidence(
        "before_ranking",
        "fuse each softmax into one kernel",
        {
            "True": (
                "remove the softmax if only the order of its results is used: ArgMax or TopK finds"
                " the same without it"
            )
        },
        "let nothing read anything but a softmax's final result, and keep its axis last",
    ),
    "split-inside-region": AdvisedChange(
        "fuse attention or norms inside the region",
        {
            TENSORRT: (_line(_EXPORT, 10), _OLD_REGION),
            API_PYTHON: (
                _line(
                    "builder_config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # then"
                    " export the layers again",
                    10,
                    brief="builder_config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED",
                ),
                _OLD_REGION,
            ),
            **dict.fromkeys(_RTX_GROUPS, (_say(_PATTERN),)),
            PYTORCH: _ATTENTION[PYTORCH],
            ANY: (_say(_PATTERN),),
        },
        unsure=(
            "build with TensorRT 10 or later (--profilingVerbosity=detailed), which fuses more of"
            " them and shows the others"
        ),
    ),
    "pointwise-chain": AdvisedChange(
        "join element-wise kernels",
        {
            **{name: (way, _UNCHAINED) for name, way in _LEVEL_5.items()},
            **dict.fromkeys(  # it does not time tactics
                (RTX, RTX_PYTHON, RTX_CPP, RTX_ONNX_RUNTIME), (_UNCHAINED,)
            ),
            PYTORCH: (_line("model = torch.compile(model)  # from PyTorch 2 on"),),
            ANY: (_UNCHAINED,),
        },
    ),
    "epilogue-missed": AdvisedChange(
        "fuse element-wise work into the products before it",
        _model(
            "keep bias, activation or residual add directly after its product: no cast, reshape or"
            " other reader between them",
            "keep bias, activation or residual add directly after its product",
        ),
    ),
    "qkv-not-merged": AdvisedChange(
        "merge the products of Q, K and V",
        _model("write Q, K and V as one product with concatenated weights, and split its result"),
    ),
    "parallel-small-kernels": AdvisedChange(CHANGES["aux-streams"].title, _STREAMS),
    "cast-chain": AdvisedChange(
        "remove casts that undo each other",
        _model(
            "remove each pair of casts, or let the layer between them run in its neighbours' type"
        ),
    ),
    "data-movement": _by_evidence(
        "mostly",
        "remove kernels that only move data",
        {
            "transposes": "keep one layout from end to end, without transposes back and forth",
            "slices and concatenations": (
                "let a convolution or product write the parts (its weights split), and slice before"
                " the arithmetic, not after it"
            ),
            "copies and reshapes": "fold constant reshapes, and keep shapes that a view can change",
        },
        "start with the longest: gather or move before the arithmetic, where there is less",
    ),
    "fragmented-myelin": _by_evidence(
        "plugins",
        "join Myelin's regions",
        {"True": "replace the plugins between the regions by standard operators"},
        "build with a newer TensorRT, which may take the layers between the regions into them; keep"
        " one type and layout around them",
    ),
    "reformat-cost": replace(
        _by_evidence(
            "cause",
            CHANGES["drop-layers"].title,
            {
                "input": "give the engine its input in the type and layout of its first layer",
                "output": "take its output in the type and layout of its last layer",
                "precision": "make neighbouring layers compute in one type",
                "quantize": "put Q/DQ directly before the layers that compute in INT8 or FP8",
                "plugin": (
                    "let supportsFormatCombination() of the plugin accept its neighbours' formats"
                ),
                "placement": (
                    "try a newer TensorRT, which may write parts of a concatenation in place: these"
                    " copies convert nothing"
                ),
                "concat": (
                    "let the branches of each concatenation write the type and layout that its"
                    " reader needs"
                ),
            },
            CHANGES["drop-layers"],
        ),
        most=3,  # its saving is of all
    ),
    "reformat-at-input": AdvisedChange(
        "give the engine its input as its first layer needs it",
        {
            TENSORRT: (
                _say(
                    "write the input in the type and layout of that layer: --inputIOFormats in"
                    " trtexec, setAllowedFormats() in the builder",
                    brief="write it in that layer's type and layout: --inputIOFormats",
                ),
            ),
            **_INPUT_FORMATS,
            TORCH_TENSORRT: (_line("torch_tensorrt.Input(shape, dtype=torch.half)"),),
            ANY: (_say("write the input in the type of that layer: declare the model's input so"),),
        },
    ),
    "reformat-at-output": AdvisedChange(
        "take the output as the last layer writes it",
        {
            TENSORRT: (
                _say(
                    "take the output in the type and layout of that layer: --outputIOFormats in"
                    " trtexec, setAllowedFormats() in the builder",
                    brief="take it in that layer's type and layout: --outputIOFormats",
                ),
            ),
            **_OUTPUT_FORMATS,
            TENSORRT_LLM: (
                _line(
                    "trtllm-build --checkpoint_dir=CHECKPOINT --output_dir=ENGINE"
                    " --logits_dtype=float16"
                ),
            ),
            ANY: (
                _say("take the output in the type of that layer: declare the model's output so"),
            ),
        },
    ),
    "reformat-ping-pong": AdvisedChange(
        "keep one layout across the layer between",
        _model(
            "let the layer between the two reformats run in its neighbours' layout, or replace it"
        ),
    ),
    "dtype-converting-reformat": AdvisedChange(
        "compute neighbouring layers in one type",
        _model("make the layers on both sides of each conversion compute in one type"),
    ),
    "fp32-in-reduced-engine": AdvisedChange(
        "run FP32 layers in half precision", _HALF, unsure=_TO_HALF
    ),
    "fp32-engine": AdvisedChange("compute in half precision", _HALF, unsure=_TO_HALF),
    "fp32-without-tf32": AdvisedChange(
        "let FP32 products use TF32",
        {
            PYTORCH: (
                _line(
                    'torch.set_float32_matmul_precision("high")  # unless set: small products stay'
                    " FP32",
                    brief='torch.set_float32_matmul_precision("high")  # unless it is set already',
                ),
            ),
            ANY: (
                _say(
                    "allow TF32 where products are made: cublasSetMathMode(handle,"
                    " CUBLAS_TF32_TENSOR_OP_MATH)"
                ),
            ),
        },
        around=True,
    ),
    "tensor-cores-missed": _by_evidence(
        "cause",
        "run products on tensor cores",
        {
            "input": "pad the input to 4 channels, as int8:chw4 or fp16:hwc8 have them",
            "channels": (
                "raise channels to the next multiple of 8 for FP16 and BF16, of 16 for INT8 and FP8"
            ),
            "builder": "look in the builder's verbose log for the tactics that were timed",
            "unknown": "make channels multiples of 8 for FP16 and BF16, of 16 for INT8 and FP8",
        },
        AdvisedChange("run products on tensor cores", _HALF, unsure=_TO_HALF),
    ),
    "unfused-quantize": _by_evidence(
        "cause",
        "fold Q/DQ into the layers beside it",
        {
            "residual": "quantise both branches of each Add, with one per-tensor scale",
            "product": "give what the convolution or MatMul writes one symmetric per-tensor scale",
            "producer": "put Q/DQ at the inputs of pooling, Add and activations too",
            "plugin": "let the plugin write the quantised type",
            "both": "remove pairs of Q and DQ that give back the float that they read",
        },
        "let nothing but the layer that quantises read the tensor, with one per-tensor scale",
    ),
    "int8-with-float-output": AdvisedChange(
        "quantise outputs too",
        _model(
            "put Q/DQ directly after the layer, with the same scale on every branch that reads it"
        ),
    ),
    "channel-alignment": AdvisedChange(
        "align channels",
        _model(
            "raise channels to the next multiple: of 8 for FP16 and BF16, 16 for INT8 and FP8, 4"
            " for TF32",
            "channels in multiples of 8 (FP16, BF16), 16 (INT8, FP8), 4 (TF32)",
        ),
    ),
    "quantized-latency-bound": _WITHOUT_QUANTIZERS,
    "fp16-norm": AdvisedChange(
        "keep norms from overflowing in FP16",
        _model("compare the output with FP32; if it is off, use BF16 or cast around the norm"),
    ),
    "under-filled-gpu": _BATCH,
    "copy-not-overlapped": AdvisedChange(
        "copy while kernels run",
        {
            PYTORCH: (
                _line('with torch.cuda.stream(copies): x = x.to("cuda", non_blocking=True)'),
            ),
            ONNX_RUNTIME: (
                _line(
                    'binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x,'
                    ' "cuda", 0))'
                ),
            ),
            OTHER: (_say("copy on a stream (or queue) of its own, from pinned memory"),),
            ANY: (_line(_COPY),),
        },
        around=True,
    ),
}
"""What to do about the findings of a rule. For a rule without an entry, its name and the rule's own
text are used.
"""

_COPIES = RULES["copy-not-overlapped"]
assert isinstance(_COPIES, AdvisedChange)
COPY_AHEAD = replace(_COPIES, title="copy for the next {:inference} while this one runs")
"""Instead of the rule's own advice in a loop: its turns get shorter."""

KEEP_ON_GPU = AdvisedChange(
    "keep data on the GPU from one {:inference} to the next",
    {ANY: (_say("copy only what the host changes or needs, or copy while kernels run"),)},
    around=True,
)
"""Instead of it where as much comes back as goes there."""

_TACTICS = "+CUBLAS,+CUBLAS_LT,+CUDNN"
_SOURCES = {
    "python": (
        "builder_config.set_tactic_sources(builder_config.get_tactic_sources()"
        " | 1 << int(trt.TacticSource.CUBLAS) | 1 << int(trt.TacticSource.CUDNN))"
    ),
    "cpp": (
        "builderConfig->setTacticSources(builderConfig->getTacticSources() | 1U <<"
        " static_cast<uint32_t>(TacticSource::kCUBLAS) | 1U <<"
        " static_cast<uint32_t>(TacticSource::kCUDNN));"
    ),
}
_AUTOTUNE = "python -m modelopt.onnx.quantization.autotune --onnx_path MODEL.onnx --quant_type "
TRIALS: Mapping[str, AdvisedChange] = {
    "half": AdvisedChange("compute these layers in half precision", _HALF, unsure=_TO_HALF),
    "fp8": AdvisedChange(
        "let ModelOpt place quantizers to FP8 where they pay",
        {ONNX: (_line(f"{_AUTOTUNE}fp8", 10),)},
    ),
    "int8": AdvisedChange(
        "let ModelOpt place quantizers to INT8 where they pay",
        {ONNX: (_line(f"{_AUTOTUNE}int8", 10),)},
    ),
    "kernels": AdvisedChange(
        "let the builder time more kernels", {name: (way,) for name, way in _LEVEL_5.items()}
    ),
    "routes": AdvisedChange(
        "let the builder try other routes",
        {
            TENSORRT: (
                _line(
                    'trtexec --onnx=MODEL.onnx --tuneBuildRoutes="-match_ragged_mha=[on|off]'
                    ' -copy_ppg=[on|off]" --saveEngine=best.plan  # all knobs: --helpBuildRoute;'
                    " not on Windows",
                    11,
                    1,
                    brief=(
                        'trtexec --onnx=MODEL.onnx --tuneBuildRoutes="-match_ragged_mha=[on|off]'
                        ' -copy_ppg=[on|off]" --saveEngine=best.plan'
                    ),
                ),
            ),
        },
    ),
    "tactic-sources": AdvisedChange(
        "let the builder use kernels of cuBLAS and cuDNN",
        {
            TENSORRT: (
                _line(
                    f"trtexec --onnx=MODEL.onnx --tacticSources={_TACTICS}  # off by default",
                    10,
                    brief=f"trtexec --onnx=MODEL.onnx --tacticSources={_TACTICS}",
                ),
            ),
            API_PYTHON: (_line(_SOURCES["python"], 10),),
            API_CPP: (_line(_SOURCES["cpp"], 10),),
        },
    ),
    "quantized-latency-bound": _WITHOUT_QUANTIZERS,
    "transposed-norm": AdvisedChange(
        "keep the transpose out of each norm",
        _model(
            "normalise before the tensor is transposed or sliced, or over the axis that lies"
            " together in memory",
            "normalise before the transpose or slice",
        ),
    ),
    "batch": _BATCH,
}
"""What to try on layers that are far from the hardware's limits, by reason (see
core.headroom_reasons.TRIED_BY), by data type, or by a rule's finding.
"""

TIMES_TACTICS = frozenset({"kernels", "routes", "tactic-sources"})
"""Trials that let the builder choose among more kernels; TensorRT for RTX's builder does not
choose.
"""

ENGINE_FILE = AdvisedChange(
    "No engine file was given; one comes from the build",
    {
        TENSORRT: (_line(_EXPORT, 8, 2), _say("TensorRT writes no engine file before 8.2")),
        API_PYTHON: (_line(_INSPECTED, 8, 2), _say("TensorRT writes no engine file before 8.2")),
        RTX: (_RTX_LAYERS,),
        RTX_CPP: (
            _line(
                "inspector->getEngineInformation(LayerInformationFormat::kJSON);  // inspector ="
                " engine->createEngineInspector()",
                brief="inspector->getEngineInformation(LayerInformationFormat::kJSON);",
            ),
        ),
        RTX_ONNX_RUNTIME: (_RTX_LAYERS,),
        ONNX_RUNTIME: (
            _line("trtexec --loadEngine=CACHED.engine --exportLayerInfo=engine.json", 8, 2),
            _say("TensorRT writes no engine file before 8.2"),
        ),
        TENSORRT_LLM: (
            _line(
                "trtllm-build --checkpoint_dir=CHECKPOINT --output_dir=ENGINE"
                " --profiling_verbosity=detailed"
            ),
        ),
        TORCH_TENSORRT: (_line('module.engine.dump_engine_layer_info_to_file("engine.json")'),),
    },
)
