package gpudoctor.rules.app_failure_test

import data.gpudoctor.rules.app_failure

death(what, more) := object.union({"what": what, "reporter": "torchrun", "text": "said", "source": "a.log", "line": 20, "begins": 10, "order": 0, "count": 1}, more)

log(job, messages) := {"logs": {"messages": messages, "job": job}}

said(id, role) := {"id": id, "program": "pytorch", "role": role, "text": "said", "source": "a.log", "line": 25, "order": 0, "count": 1, "ranks": 1}

raised := death("exception", {
	"class": "ValueError", "said": "bad batch", "rank": 3, "host": "node7", "uncaught": true,
	"file": "train.py", "file_line": 41, "function": "step", "line": 20,
})

test_fires_by_what_ended_it if {
	every told in [
		[death("signal", {"class": "SIGSEGV", "rank": 1}), "likely", {"who": "Rank 1", "class": "SIGSEGV", "meaning": []}],
		[death("signal", {"class": "SIGKILL", "pid": 12}), "possible", {"how": "was ended by a signal"}],
		[death("exit", {"code": 9, "host": "node7", "pid": 12}), "likely", {"who": "Process 12", "host": "node7", "how": "exited on its own", "code": [9]}],
		[death("exit", {"code": 1}), "possible", {"code": [1]}],
		[death("exit", {}), "possible", {"how": "exited on its own", "said": "", "meaning": []}],
		[death("assertion", {"said": "t < n", "file": "Loss.cu", "file_line": 4}), "confirmed", {"said": "t < n", "file": "Loss.cu", "file_line": 4}],
	] {
		some f in app_failure.findings with input as log({"first": told[0]}, [])
		f.confidence == told[1]
		object.subset(f.about, told[2])
	}
	some f in app_failure.findings with input as log({"first": death("signal", {"class": "SIGKILL"})}, [])
	f.remedies[0] == "free-memory"
}

test_fires_where_others_died_alike if {
	some f in app_failure.findings with input as log({"first": raised, "alike": [4]}, [])
	f.about.alike == [4]
	f.confidence == "confirmed"
	some g in app_failure.findings with input as log({"first": object.remove(raised, ["uncaught", "said"]), "alike": [4, 5]}, [])
	g.about.alike == [4, 5]
	g.confidence == "likely"
	long := concat("", ["abc" | some _ in numbers.range(1, 99)])
	some h in app_failure.findings with input as log({"first": object.remove(object.union(raised, {"said": long}), ["uncaught"]), "ended": true}, [])
	h.confidence == "confirmed"
	count(h.about.said) == 160
}

test_fires_where_others_lost_it if {
	every told in [[{"rank": "3", "told_by": [0]}, {"failed_rank": "3"}], [{"told_by": [0]}, {}]] {
		some f in app_failure.findings with input as log({"lost": told[0]}, [said("gloo-peer-closed", "consequence")])
		f.params == told[1]
		count(f.messages) == 1
	}
}

test_unresolvable if count(app_failure.findings) == 0 with input as {}
