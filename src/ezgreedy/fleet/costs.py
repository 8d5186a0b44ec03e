"""How long does everything in a fleet take? Measured, or given for a simulation."""

from dataclasses import dataclass, fields, replace

from ezgreedy import requirements as require

CPU_UPDATE_SECONDS = 5.8  # 64 windows of 0.09 s on one core
GPU_UPDATE_SECONDS = 0.16  # 2.7 TFLOP at 17 TFLOP/s


@dataclass(frozen=True)
class Costs:
    """Seconds that everything takes; the defaults are the measurements of docs/scaling.md.

    Args:
        step: one step of one lane: environment, network, exploration and cutting.
        act: what one step of an actor takes beside that of each of its lanes.
        load: loading new weights into an actor.
        store: storing a window in a memory.
        draw: drawing a window and laying it out for the journey.
        send: sending a batch from a memory to the learner.
        decode: decoding a window, for one thread of the learner.
        update: one update.
        publish: handing out weights.
        evaluate: one frame of an evaluation.
        call: the coordinator's work for one call.
        latency: time that a call or an answer travels.
        start: time from the start of a process to its first sign of life.
    """

    step: float = 1.1e-3
    act: float = 5.4e-3
    load: float = 3.5e-3
    store: float = 0.18e-3
    draw: float = 0.04e-3
    send: float = 2.5e-3  # 2 MB at 1.25 GB/s, and a call
    decode: float = 2.1e-3
    update: float = GPU_UPDATE_SECONDS
    publish: float = 4e-3
    evaluate: float = 1.0 / 742.0
    call: float = 0.5e-3  # 2,000 calls a second
    latency: float = 0.4e-3
    start: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            require.number(field.name, getattr(self, field.name), 0.0)

    @classmethod
    def of(cls, **changes: float) -> "Costs":
        """Costs in which everything that is not named takes no time."""
        return cls(**{field.name: 0.0 for field in fields(cls)} | changes)


def on_gpu(costs: Costs, *, is_gpu: bool) -> Costs:
    """The same costs with a learner on a GPU, or on one core.

    Args:
        costs: the costs.
        is_gpu: whether it learns on a GPU.
    """
    return replace(costs, update=GPU_UPDATE_SECONDS if is_gpu else CPU_UPDATE_SECONDS)
