// Owners of everything that ends. A scope ends what it owns in reverse order, whatever fails on the way.

export class LifetimeScope implements AsyncDisposable {
  readonly #undo: (() => unknown)[] = [];
  readonly #end = new AbortController();
  readonly #closed = new AbortController();
  #ended: Promise<void> | undefined;

  /** Aborted when this scope begins to end. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Aborted when it has left and is taken apart: requests that it still has under way ask others until then. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  own<T extends Disposable | AsyncDisposable>(thing: T): T {
    this.defer(() =>
      Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose](),
    );
    return thing;
  }

  /** Calls `undo` at the end. After the end it is called at once, so that nothing stays open. */
  defer(undo: () => unknown): void {
    if (this.#ended) void Promise.resolve().then(undo);
    else this.#undo.push(undo);
  }

  /** Calls `tick` again and again. It keeps no process alive and never overlaps itself; what it throws goes to `failed`. */
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

  /** Fires the signal of leaving. Nothing is ended yet. */
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
    if (errors.length > 0) throw new AggregateError(errors, "Some things did not end well.");
  }
}

/**
 * What outlives a generation: made once, ended by the last one that holds it. Nothing else of any of them is kept: a function that a
 * generation hands over names all that its plugin had there.
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
