// What a row is summed up under, whatever sums it: whose call it was, where it went, how it ended. Sums are kept at three depths, the
// more of it the deeper: many keys and labels make many groups, and most questions need neither.
import type {
  CallState,
  Entry,
  HeadersOut,
  LedgerQuery,
  Opt,
  RequestFacts,
  TotalsBy,
  Usage,
} from "../plugin/index.ts";

/** What groups of sums are told apart by. Absent is "" for what is always a name. */
export interface RowFacts {
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly frontend: string;
  readonly outcome: string;
  readonly state: CallState | "open" | "adjusted";
  readonly price: string | null;
  readonly key: string;
  readonly account: Opt<string>;
  readonly labels: HeadersOut;
}

/** What a sum has to know of a row. */
export interface Summand {
  readonly kind: Entry["kind"];
  readonly at: number;
  readonly target: Pick<Entry["target"], "provider" | "model" | "credential">;
  readonly key: string;
  readonly account?: Opt<string>;
  readonly labels: HeadersOut;
  readonly price?: Opt<string | null>;
  readonly asked?: Opt<Pick<RequestFacts, "frontend">>;
  readonly state: Entry["state"];
  readonly outcome: string;
  readonly usage: Usage;
  readonly costNano: bigint | null;
}

/** The facts of one row. */
export const factsOf = (row: Summand): RowFacts => ({
  provider: row.target.provider,
  model: row.target.model,
  credential: row.target.credential,
  frontend: row.asked?.frontend ?? "",
  outcome: row.outcome,
  state: row.kind === "adjust" ? "adjusted" : row.state,
  price: row.price ?? null,
  key: row.key,
  account: row.account,
  labels: row.labels,
});

/** Settled calls and their corrections; open or void calls only when they are what is asked for. */
export const isCounted = (
  row: Pick<Summand, "kind" | "state">,
  state: LedgerQuery["state"],
): boolean =>
  state === undefined
    ? row.kind !== "reserve" && row.state !== "void"
    : row.kind === (state === "open" ? "reserve" : "settle");

/** The same of facts that are no open call's. */
export const areCounted = ({ state }: RowFacts, asked: LedgerQuery["state"]): boolean =>
  asked === undefined ? state !== "void" : state === asked;

/** Without keys and labels; with the key and its accounts; with its labels too. */
export const DEPTHS = ["calls", "keys", "labels"] as const;
/** How much the groups of a sum still tell. */
export type Depth = (typeof DEPTHS)[number];

const DEEP: { readonly [D in TotalsBy]?: 1 | 2 } = {
  key: 1,
  account: 1,
  accounts: 1,
  label: 2,
  labels: 2,
};

/** The least depth that can answer; undefined: these are no conditions at all. */
export function depthOf(by: readonly TotalsBy[], query: LedgerQuery): Depth | undefined {
  let depth = -1;
  for (const each of by) depth = Math.max(depth, DEEP[each] ?? 0);
  if (query.label !== undefined) depth = 2;
  else if (query.key !== undefined || query.account !== undefined) depth = Math.max(depth, 1);
  else if (
    query.provider !== undefined ||
    query.model !== undefined ||
    query.credential !== undefined ||
    query.frontend !== undefined ||
    query.outcome !== undefined
  )
    depth = Math.max(depth, 0);
  return DEPTHS[depth];
}

/** Whether an account, or one that it stood in, is the one that is meant. */
const isIn = (account: string | undefined, meant: string): boolean =>
  account !== undefined && `/${account}/`.includes(`/${meant}/`);

const hasLabel = (labels: HeadersOut, meant: string): boolean => {
  for (const name in labels)
    if (labels[name] !== undefined && `${name}=${labels[name]}` === meant) return true;
  return false;
};

/** Whether these are what a query asks for, as far as facts can tell. */
export const meets = (of: RowFacts, query: LedgerQuery): boolean =>
  (query.key === undefined || of.key === query.key) &&
  (query.account === undefined || isIn(of.account, query.account)) &&
  (query.provider === undefined || of.provider === query.provider) &&
  (query.model === undefined ||
    of.model === query.model ||
    `${of.provider}/${of.model}` === query.model) &&
  (query.label === undefined || hasLabel(of.labels, query.label)) &&
  (query.credential === undefined || of.credential === query.credential) &&
  (query.frontend === undefined || of.frontend === query.frontend) &&
  (query.outcome === undefined || of.outcome === query.outcome);
