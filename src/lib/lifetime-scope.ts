// Owns resources and releases them in reverse order. An error in one release does not stop the
// others.

export class LifetimeScope implements AsyncDisposable {
  readonly #undo: (() => unknown)[] = [];
  readonly #end = new AbortController();
  readonly #closed = new AbortController();
  #ended: Promise<void> | undefined;

  /** Aborted when this scope begins to close. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /**
   * Aborted when the scope is disposed, after `signal`. Requests that are still open in the scope
   * may call upstreams until then.
   */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  own<T extends Disposable | AsyncDisposable>(thing: T): T {
    this.defer(() =>
      Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose](),
    );
    return thing;
  }

  /**
   * Calls `undo` when the scope is disposed. If the scope is already disposed, `undo` is called
   * immediately, so that no resource stays open.
   */
  defer(undo: () => unknown): void {
    if (this.#ended) void Promise.resolve().then(undo);
    else this.#undo.push(undo);
  }

  /**
   * Calls `tick` every `ms` milliseconds. The timer does not keep the process running, calls never
   * overlap, and errors are passed to `failed`.
   */
  every(
    ms: number,
    tick: (signal: AbortSignal) => unknown,
    failed: (error: unknown) => void,
  ): void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy || this.#end.signal.aborted) return;
      busy = true;
      void Promise.resolve()
        .then(() => tick(this.#end.signal))
        .catch(failed)
        .finally(() => (busy = false));
    }, ms);
    timer.unref();
    this.defer(() => clearInterval(timer));
  }

  /** Aborts `signal`. No resource is released yet. */
  beginClose(): void {
    this.#end.abort();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#ended ??= this.#dispose());
  }

  async #dispose(): Promise<void> {
    this.beginClose();
    this.#closed.abort();
    const errors: unknown[] = [];
    for (const undo of this.#undo.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, "Closing some resources failed.");
  }
}

/**
 * Resources that can be shared between config generations: created once, and released by the last
 * holder. Only the resource itself is stored. A function of a generation would keep that
 * generation's plugin and all its data in memory.
 */
export class SharedResources {
  readonly #resources = new Map<string, { readonly thing: object; holders: number }>();

  acquire<T extends object>(
    scope: LifetimeScope,
    key: string,
    create: () => T,
    end?: (thing: T) => unknown,
  ): T {
    let held = this.#resources.get(key);
    if (!held) {
      held = { thing: create(), holders: 0 };
      this.#resources.set(key, held);
    }
    held.holders++;
    const mine = held;
    const thing = mine.thing as T;
    scope.defer(() => {
      if (--mine.holders > 0) return undefined;
      this.#resources.delete(key);
      return end?.(thing);
    });
    return thing;
  }
}
