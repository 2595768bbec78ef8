// Open calls by their attempt. A Map would do the same, but it costs twenty times as much here: it makes every key that it
// is asked for a name of the engine's own, and its past tables keep calls alive that are long over.

/** What the table keeps. */
export interface CallEntry {
  readonly attempt: string;
  /** The table's own: the next one in the same place. */
  nextInBucket?: this | undefined;
}

/** Calls that are open, by their attempt. */
export interface OpenCalls<C extends CallEntry> {
  readonly size: number;
  get(attempt: string): C | undefined;
  values(): Iterable<C>;
}

/** The table, as the book changes it. */
export interface CallTable<C extends CallEntry> extends OpenCalls<C> {
  /** It is not there. */
  add(call: C): void;
  /** It is there. */
  remove(call: C): void;
}

const MIN_BUCKETS = 16;

/** An empty table. */
export function createCallTable<C extends CallEntry>(): CallTable<C> {
  let buckets: (C | undefined)[] = Array.from({ length: MIN_BUCKETS });
  let size = 0;

  /** Attempts differ at their end, where they count. */
  function bucketOf(attempt: string): number {
    let hash = attempt.length;
    for (let i = Math.max(0, attempt.length - 10); i < attempt.length; i++)
      hash = (Math.imul(hash, 31) + attempt.charCodeAt(i)) | 0;
    return (hash ^ (hash >>> 15)) & (buckets.length - 1);
  }
  function put(call: C): void {
    const at = bucketOf(call.attempt);
    call.nextInBucket = buckets[at];
    buckets[at] = call;
  }
  function* values(): Generator<C, void> {
    for (const top of buckets) for (let call = top; call; call = call.nextInBucket) yield call;
  }

  return {
    get size() {
      return size;
    },
    get(attempt) {
      let call = buckets[bucketOf(attempt)];
      while (call && call.attempt !== attempt) call = call.nextInBucket;
      return call;
    },
    values,
    add(call) {
      if (++size > buckets.length) {
        const all = [...values()];
        buckets = Array.from({ length: buckets.length * 4 });
        all.forEach(put);
      }
      put(call);
    },
    remove(call) {
      size--;
      const at = bucketOf(call.attempt);
      let above = buckets[at];
      if (above === call) buckets[at] = call.nextInBucket;
      else
        for (; above; above = above.nextInBucket)
          if (above.nextInBucket === call) {
            above.nextInBucket = call.nextInBucket;
            break;
          }
      call.nextInBucket = undefined;
    },
  };
}
