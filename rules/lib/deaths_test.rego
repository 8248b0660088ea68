package gpudoctor.lib.deaths_test

import data.gpudoctor.lib.deaths

exception(class, words) := {
	"what": "exception", "class": class, "said": words, "reporter": "python", "uncaught": true,
	"text": words, "source": "a.log", "line": 20, "begins": 10, "order": 0, "count": 1,
}

ended(what, more) := object.union({"what": what, "reporter": "torchrun", "text": "said", "source": "a.log", "line": 40, "begins": 40, "order": 0, "count": 1}, more)

said(id, role, line) := {"id": id, "program": "nccl", "role": role, "text": "said", "source": "a.log", "line": line, "order": 0, "count": 1, "ranks": 1}

log(found, messages) := {"texts": [{"name": "a.log", "lines": 50, "bytes": 9, "kinds": []}], "logs": {"messages": messages, "deaths": found}}

test_classes if {
	every printed in ["KeyError: 'x'", "ValueError: bad", "trainer.BadBatch: no label", "ray.exceptions.RayTaskError(ValueError): bad", "AssertionError", "TypeError: nccl"] {
		deaths.its_own(printed)
	}
	every printed in [
		"torch.distributed.DistBackendError: x", "RuntimeError: NCCL error in: x", "torch.OutOfMemoryError: x", "ConnectionResetError: [Errno 104]",
		"ImportError: libcudart.so.12: cannot open shared object file", "OSError: [Errno 24] Too many open files", "EOFError", "KeyboardInterrupt",
		"RuntimeError: Engine core initialization failed. See root cause above.", "ray.exceptions.ActorDiedError: x", "RuntimeError: CUDA error: x",
	] {
		not deaths.its_own(printed)
	}
}

test_first_by_launcher if {
	one := object.union(exception("KeyError", "a"), {"rank": 0})
	two := object.union(exception("ValueError", "b"), {"rank": 3})
	root := ended("exit", {"code": 1, "rank": 3, "first": true})
	d := deaths.first with input as log([one, two, root], [])
	d.class == "ValueError"

	# An exception that no rank is named for is that of the rank which the launcher names.
	e := deaths.first with input as log([exception("KeyError", "a"), root], [])
	e.rank == 3
	f := deaths.first with input as log([exception("KeyError", "a"), ended("exit", {"code": 1, "rank": 2, "reporter": "slurm"})], [])
	f.rank == 2
}

test_signals_and_exits if {
	every d in [ended("signal", {"class": "SIGSEGV"}), ended("signal", {"class": "SIGKILL"}), ended("signal", {"class": "SIGABRT"}), ended("exit", {"code": 9})] {
		count(deaths.own) == 1 with input as log([d], [])
	}
	count(deaths.own) == 0 with input as log([ended("signal", {"class": "SIGTERM"})], [])

	# Where memory ran out, or an exception of communication ended the process, these follow.
	count(deaths.own) == 0 with input as object.union(log([ended("signal", {"class": "SIGKILL"})], []), {"kernel_log": {"events": [{"kind": "oom"}]}})
	count(deaths.own) == 0 with input as log([exception("DistBackendError", "NCCL"), ended("exit", {"code": 1})], [])
	count(deaths.own) == 1 with input as log([exception("m.ChildFailedError", ""), ended("exit", {"code": 9})], [])
}

test_assertions if {
	count(deaths.own) == 1 with input as log([ended("assertion", {"said": "t < n", "file": "Loss.cu"})], [])
	count(deaths.own) == 0 with input as log([ended("assertion", {"said": "t < n", "file": "src/nccl_net.c"})], [])
}

test_trouble_before if {
	count(deaths.own) == 0 with input as log([exception("KeyError", "a")], [said("nccl-system-error", "category", 5)])
	count(deaths.own) == 1 with input as log([exception("KeyError", "a")], [said("nccl-system-error", "category", 30)])
	count(deaths.own) == 1 with input as log([exception("KeyError", "a")], [said("process-killed", "category", 5)])
	late := object.union(exception("KeyError", "a"), {"time": "2025-11-22T10:10:00", "source": "b.log"})
	count(deaths.own) == 0 with input as log([late], [object.union(said("nccl-system-error", "category", 5), {"time": "2025-11-22T10:00:00"})])
}

test_claimed if {
	count(deaths.own) == 0 with input as log([exception("ValueError", "a")], [said("vllm-memory-short", "cause", 20)])
}

test_behind if {
	count(deaths.own) == 0 with input as log([object.union(exception("KeyError", "a"), {"behind": ["torch.distributed.DistBackendError: x"]})], [])
	count(deaths.own) == 1 with input as log([object.union(exception("KeyError", "a"), {"behind": ["IndexError: x"]})], [])
}

caught(more) := object.union(object.remove(exception("KeyError", "a"), ["uncaught"]), more)

test_came_through if {
	count(deaths.own) == 1 with input as log([caught({})], [])
	count(deaths.own) == 0 with input as log([caught({"ignored": true})], [])
	count(deaths.own) == 0 with input as log([caught({"steps_after": 8})], [])
	count(deaths.own) == 0 with input as log([caught({"steps_after": 3})], [])
	count(deaths.own) == 1 with input as log([caught({"steps_after": 3}), ended("exit", {"code": 1})], [])
	count(deaths.own) == 0 with input as log([caught({"steps_after": 3}), ended("exit", {"code": 1})], [said("nccl-system-error", "category", 30)])

	# Far from the end of the text only a failure shows that nobody caught it.
	far := {"texts": [{"name": "a.log", "lines": 5000, "bytes": 9, "kinds": []}]}
	count(deaths.own) == 0 with input as object.union(log([caught({})], []), far)
	count(deaths.own) == 1 with input as object.union(log([caught({})], [said("torch-store-closed", "consequence", 90)]), far)
	count(deaths.own) == 1 with input as object.union(log([caught({}), ended("exit", {"code": 1})], []), far)
}
