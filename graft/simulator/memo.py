"""Remember the outcome of slow reads that can never change, such as anything addressed by a SHA."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """At most `size` outcomes, the oldest dropped first. Callers that ask at the same time share one read;
    a read that fails is forgotten."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks: dict[object, asyncio.Task[T]] = {}

    async def get(self, key: object, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(read())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._forget_failure(key, done))
            if len(self._tasks) > self._size:
                self._tasks.pop(next(iter(self._tasks)))
        if task.done():
            return task.result()
        return await asyncio.shield(task)

    def _forget_failure(self, key: object, task: asyncio.Task[T]) -> None:
        if (task.cancelled() or task.exception() is not None) and self._tasks.get(key) is task:
            del self._tasks[key]
