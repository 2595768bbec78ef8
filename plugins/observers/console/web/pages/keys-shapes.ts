// Keys and accounts as commands show them, as far as pages read it.
import type { Counted } from "../limits.ts";
import type { Tone } from "../parts/plain.ts";

export interface Key {
  readonly id: string;
  readonly name?: string;
  readonly state: "valid" | "expired" | "revoked";
  readonly account?: string;
  readonly models?: readonly string[];
  readonly frontends?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly limits?: readonly string[];
  readonly counted?: readonly Counted[];
  readonly created: number;
  readonly expires?: number;
  readonly version?: number;
  /** Of an admin, that asks commands and no models. */
  readonly admin?: string;
}

export interface Account {
  readonly id: string;
  readonly name?: string;
  readonly parent?: string;
  readonly path: string;
  readonly state: "valid" | "ended" | "broken";
  /** "gateway.yaml:12": it is changed there. */
  readonly from?: string;
  readonly keys: number;
  readonly limits?: readonly string[];
  readonly counted?: readonly Counted[];
  readonly defaults?: { readonly limits: readonly string[] };
  readonly models?: readonly string[];
  readonly frontends?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly tells?: string;
  readonly version?: number;
}

export const TONES: Readonly<Record<string, Tone>> = {
  valid: "good",
  expired: "warn",
  revoked: "bad",
  ended: "bad",
  broken: "bad",
};

export const nameOf = ({ name, id }: { name?: string; id: string }): string => name ?? id;

/** A limit with what was counted of it. */
export const barsOf = ({
  limits = [],
  counted,
}: {
  limits?: readonly string[];
  counted?: readonly Counted[];
}) =>
  limits.map(
    (limit, at) => counted?.find((each) => each.limit === limit) ?? counted?.[at] ?? limit,
  );
