// Keys and accounts: the parts of command responses that the pages use.
import type { UsedLimit } from "../../limits.ts";
import type { Tone } from "../../parts/basics.ts";

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
  readonly limitUsage?: readonly UsedLimit[];
  readonly created: number;
  readonly expires?: number;
  readonly version?: number;
  /** Set for an admin's key, which can run commands but cannot call models. */
  readonly admin?: string;
}

export interface Account {
  readonly id: string;
  readonly name?: string;
  readonly parent?: string;
  readonly path: string;
  readonly state: "valid" | "closed" | "broken";
  /**
   * Location of the definition, such as "gateway.yaml:12". The account can be changed only there.
   */
  readonly definedAt?: string;
  readonly keyCount: number;
  readonly limits?: readonly string[];
  readonly limitUsage?: readonly UsedLimit[];
  readonly defaults?: { readonly limits: readonly string[] };
  readonly models?: readonly string[];
  readonly frontends?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly discloseLimits?: string;
  readonly version?: number;
}

export const STATE_TONES: Readonly<Record<string, Tone>> = {
  valid: "good",
  expired: "warn",
  revoked: "bad",
  closed: "bad",
  broken: "bad",
};

export const displayName = ({ name, id }: { name?: string; id: string }): string => name ?? id;

/** Returns the limits with their use, if it is known. */
export const limitBars = ({
  limits = [],
  limitUsage,
}: {
  limits?: readonly string[];
  limitUsage?: readonly UsedLimit[];
}) =>
  limits.map(
    (limit, at) => limitUsage?.find((each) => each.limit === limit) ?? limitUsage?.[at] ?? limit,
  );
