// What a key usually gets out of a model: the p95 of its last answers. Bounded; a guess, not a record.

/** Answers remembered for each key and model. */
const DEPTH = 64;

export interface Usual {
  saw(who: string, output: number): void;
  /** Undefined until there is something to go by. */
  p95(who: string): number | undefined;
}

export function createUsual(most = 4_096): Usual {
  const seen = new Map<string, { last: number[]; next: number }>();
  return {
    saw(who, output) {
      const ring = seen.get(who) ?? { last: [], next: 0 };
      ring.last[ring.next % DEPTH] = output;
      ring.next++;
      // Put back at the end: the one that was heard of longest ago goes first.
      seen.delete(who);
      seen.set(who, ring);
      if (seen.size > most) seen.delete(seen.keys().next().value!);
    },
    p95(who) {
      const last = seen.get(who)?.last;
      if (!last || last.length < 8) return undefined;
      const sorted = [...last].sort((a, b) => a - b);
      return sorted[Math.floor((sorted.length - 1) * 0.95)];
    },
  };
}
