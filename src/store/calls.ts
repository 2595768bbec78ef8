// Open calls by their attempt. A Map would do the same, but it costs twenty times as much here: it makes every key that it
// is asked for a name of the engine's own, and its past tables keep calls alive that are long over.

/** What the table keeps. */
export interface CallByAttempt {
  readonly attempt: string;
  /** The table's own: the next one in the same place. */
  below?: this | undefined;
}

/** Calls that are open, by their attempt. */
export interface OpenCalls<C extends CallByAttempt> {
  readonly size: number;
  get(attempt: string): C | undefined;
  values(): Iterable<C>;
}

/** The table, as the book changes it. */
export interface Calls<C extends CallByAttempt> extends OpenCalls<C> {
  /** It is not there. */
  add(call: C): void;
  /** It is there. */
  remove(call: C): void;
}

const FEWEST = 16;

/** An empty table. */
export function createCalls<C extends CallByAttempt>(): Calls<C> {
  let places: (C | undefined)[] = Array.from({ length: FEWEST });
  let size = 0;

  /** Attempts differ at their end, where they count. */
  function place(attempt: string): number {
    let hash = attempt.length;
    for (let i = Math.max(0, attempt.length - 10); i < attempt.length; i++)
      hash = (Math.imul(hash, 31) + attempt.charCodeAt(i)) | 0;
    return (hash ^ (hash >>> 15)) & (places.length - 1);
  }
  function put(call: C): void {
    const at = place(call.attempt);
    call.below = places[at];
    places[at] = call;
  }
  function* values(): Generator<C, void> {
    for (const top of places) for (let call = top; call; call = call.below) yield call;
  }

  return {
    get size() {
      return size;
    },
    get(attempt) {
      let call = places[place(attempt)];
      while (call && call.attempt !== attempt) call = call.below;
      return call;
    },
    values,
    add(call) {
      if (++size > places.length) {
        const all = [...values()];
        places = Array.from({ length: places.length * 4 });
        all.forEach(put);
      }
      put(call);
    },
    remove(call) {
      size--;
      const at = place(call.attempt);
      let above = places[at];
      if (above === call) places[at] = call.below;
      else
        for (; above; above = above.below)
          if (above.below === call) {
            above.below = call.below;
            break;
          }
      call.below = undefined;
    },
  };
}
