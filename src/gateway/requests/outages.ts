// When providers were in cooldown: from the first failure to the first response after it, the newest so many. Kept over restarts, since
// an operator asks for last night in the morning.
import type { Notice } from "../../plugin/notice.ts";
import type { ErrorKind } from "../../model/error.ts";

/** One cooldown of a provider's credential. Times are Unix milliseconds. */
export interface Outage {
  readonly provider: string;
  readonly credential: string;
  /** null: all its models. */
  readonly model: string | null;
  /** The kind of the first failure. */
  readonly kind: ErrorKind;
  readonly from: number;
  /** When the cooldown ends, or ended. Each failure during it moves it. */
  readonly until: number;
  /** The first response after it. Absent: there was none yet. */
  readonly to?: number;
}

type Target = Pick<Outage, "provider" | "credential" | "model">;

const MOST = 500;
/** Of one provider in an answer. */
const SHOWN = 20;

const isSame = (a: Target, b: Target): boolean =>
  a.provider === b.provider && a.credential === b.credential && a.model === b.model;

export class Outages {
  /** The oldest first. */
  #all: Outage[] = [];
  #changes = 0;

  /** Grows with every change. */
  get changes(): number {
    return this.#changes;
  }

  /** With several workers each of them reports a cooldown and its end: the first report of each counts. */
  told(notice: Notice): void {
    if (notice.type === "rests") {
      const { provider, credential, model, kind, until, at } = notice;
      const open = this.#open(notice);
      const outage = { provider, credential, model, kind: open?.kind ?? kind, until };
      this.#put(open, { ...outage, from: open?.from ?? at });
    } else if (notice.type === "recovered") {
      const open = this.#open(notice);
      if (open) this.#put(open, { ...open, to: notice.at });
    }
  }

  /** The newest first. */
  of(provider: string): readonly Outage[] {
    return this.#all
      .filter((each) => each.provider === provider)
      .toReversed()
      .slice(0, SHOWN);
  }

  written(): Buffer {
    return Buffer.from(JSON.stringify(this.#all));
  }

  /** Throws for anything that `written` did not return. */
  restore(bytes: Buffer): void {
    const all = JSON.parse(bytes.toString()) as unknown;
    if (!Array.isArray(all) || !all.every(isOutage)) throw new TypeError("Not a list of outages.");
    this.#all = all.slice(-MOST);
  }

  #open(of: Target): Outage | undefined {
    return this.#all.findLast((each) => isSame(each, of) && each.to === undefined);
  }

  #put(before: Outage | undefined, after: Outage): void {
    this.#changes++;
    if (before) this.#all[this.#all.indexOf(before)] = after;
    else this.#all.push(after);
    if (this.#all.length > MOST) this.#all.shift();
  }
}

const isOutage = (value: unknown): value is Outage => {
  const { provider, credential, model, kind, from, until, to } = (value ?? {}) as Outage;
  return (
    [provider, credential, kind].every((each) => typeof each === "string") &&
    (model === null || typeof model === "string") &&
    [from, until, to ?? 0].every((each) => Number.isFinite(each))
  );
};
