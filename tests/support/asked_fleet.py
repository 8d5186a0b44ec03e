"""A fleet whose processes answer when the test says so."""

from types import SimpleNamespace

from ezgreedy.fleet.supervision import Process


class Asked:
    """A supervisor that writes down what processes are asked, for the test to settle."""

    def __init__(self):
        self.calls = []
        self.time = 0.0

    def now(self):
        return self.time

    def ask(self, process, method, *arguments, then, lost, limit=None):
        call = SimpleNamespace(
            process=process, method=method, asked=arguments, then=then, lost=lost
        )
        self.calls.append(call)

    def num_calls(self, process):
        return sum(call.process is process for call in self.calls)

    def settle(self, number, *answer):
        call = self.calls.pop(number)
        call.then(*answer) if answer else call.lost()


def process(name, number):
    return Process(f"{name} {number}", None, lambda process: None, number, is_ready=True)


def members(shards=1, evaluators=1, evaluation_seconds=None):
    supervisor = Asked()
    return SimpleNamespace(
        supervisor=supervisor,
        fleet=SimpleNamespace(shards=shards, evaluation_seconds=evaluation_seconds),
        memories=[process("memory", number) for number in range(shards)],
        evaluators=[process("evaluator", number) for number in range(evaluators)],
        reports=[None] * shards,
        num_calls=supervisor.num_calls,
    )
