// A table of open calls by attempt. A `Map` would cost 20 times as much here: it interns every key
// that is looked up, and its discarded tables keep ended calls in memory.

/** An entry of the table. */
export interface CallEntry {
  readonly attempt: string;
  /** Next entry in the same bucket. Used only by the table. */
  nextInBucket?: this | undefined;
}

/** Open calls by attempt. */
export interface OpenCalls<C extends CallEntry> {
  readonly size: number;
  get(attempt: string): C | undefined;
  values(): Iterable<C>;
}

/** The table with its write methods, for the ledger rules. */
export interface CallTable<C extends CallEntry> extends OpenCalls<C> {
  /** Adds a call that is not in the table. */
  add(call: C): void;
  /** Removes a call that is in the table. */
  remove(call: C): void;
}

const MIN_BUCKETS = 16;

/** Creates an empty table. */
export function createCallTable<C extends CallEntry>(): CallTable<C> {
  let buckets: (C | undefined)[] = Array.from({ length: MIN_BUCKETS });
  let size = 0;

  /** Attempt ids end with a counter, so their last characters differ. */
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
