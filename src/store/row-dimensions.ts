// What a row is summed up under, whatever sums it: whose call it was, where it went, how it ended. Sums are kept at several depths, the
// more of it the deeper: keys times models make many groups, and most questions need one of the two, or neither.
import type {
  CallState,
  LedgerEntry,
  HeadersOut,
  LedgerQuery,
  Opt,
  ClientRequestInfo,
  TotalsBy,
  Usage,
} from "../plugin/index.ts";

/** What groups of sums are told apart by. Absent is "" for what is always a name. */
export interface RowDimensions {
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
export interface SummableRow {
  readonly kind: LedgerEntry["kind"];
  readonly at: number;
  readonly target: Pick<LedgerEntry["target"], "provider" | "model" | "credential">;
  readonly key: string;
  readonly account?: Opt<string>;
  readonly labels: HeadersOut;
  readonly price?: Opt<string | null>;
  readonly clientRequest?: Opt<Pick<ClientRequestInfo, "frontend">>;
  readonly state: LedgerEntry["state"];
  readonly outcome: string;
  readonly usage: Usage;
  readonly costNano: bigint | null;
}

/** The facts of one row. */
export const dimensionsOf = (row: SummableRow): RowDimensions => ({
  provider: row.target.provider,
  model: row.target.model,
  credential: row.target.credential,
  frontend: row.clientRequest?.frontend ?? "",
  outcome: row.outcome,
  state: row.kind === "adjust" ? "adjusted" : row.state,
  price: row.price ?? null,
  key: row.key,
  account: row.account,
  labels: row.labels,
});

/** Settled calls and their corrections; open or void calls only when they are what is asked for. */
export const isSettledRow = (
  row: Pick<SummableRow, "kind" | "state">,
  state: LedgerQuery["state"],
): boolean =>
  state === undefined
    ? row.kind !== "reserve" && row.state !== "void"
    : row.kind === (state === "open" ? "reserve" : "settle");

/** The same of facts that are no open call's. */
export const isSettledGroup = ({ state }: RowDimensions, asked: LedgerQuery["state"]): boolean =>
  asked === undefined ? state !== "void" : state === asked;

/**
 * What groups of a depth tell beside the state of a call: where it went and how it ended (`calls`), whose it was, its key and account
 * (`keys`), and its labels. Each depth can be made of any that tells as much.
 */
export const ROLLUP_DIMENSIONS = {
  calls: { calls: true, keys: false, labels: false },
  holders: { calls: false, keys: true, labels: false },
  tags: { calls: false, keys: true, labels: true },
  keys: { calls: true, keys: true, labels: false },
  labels: { calls: true, keys: true, labels: true },
} as const;
/** How much the groups of a sum still tell. */
export type RollupLevel = keyof typeof ROLLUP_DIMENSIONS;
/** From the least groups to the most, as a rule. */
export const ROLLUP_LEVELS = [
  "calls",
  "holders",
  "tags",
  "keys",
  "labels",
] as const satisfies readonly RollupLevel[];

type DimensionGroup = keyof (typeof ROLLUP_DIMENSIONS)[RollupLevel];
/** What a question by it needs; a call's state, its day and its hour are told at each depth. */
const GROUP_REQUIREMENTS: { readonly [D in TotalsBy]: DimensionGroup | undefined } = {
  key: "keys",
  account: "keys",
  accounts: "keys",
  label: "labels",
  labels: "labels",
  provider: "calls",
  model: "calls",
  credential: "calls",
  frontend: "calls",
  outcome: "calls",
  price: "calls",
  state: undefined,
  day: undefined,
  hour: undefined,
};
const groupsByDimension = (by: readonly TotalsBy[], told: DimensionGroup): boolean =>
  by.some((each) => GROUP_REQUIREMENTS[each] === told);

/** The least depth that can answer; undefined: any can. */
export function rollupLevelFor(
  by: readonly TotalsBy[],
  query: LedgerQuery,
): RollupLevel | undefined {
  const { key, account, label, provider, model, credential, frontend, outcome } = query;
  const calls =
    (provider ?? model ?? credential ?? frontend ?? outcome) !== undefined ||
    groupsByDimension(by, "calls");
  const keys = (key ?? account) !== undefined || groupsByDimension(by, "keys");
  const labels = label !== undefined || groupsByDimension(by, "labels");
  if (!calls && !keys && !labels) return undefined;
  return ROLLUP_LEVELS.find((depth) => {
    const told = ROLLUP_DIMENSIONS[depth];
    return (told.calls || !calls) && (told.keys || !keys) && (told.labels || !labels);
  });
}

/** Whether an account, or one that it stood in, is the one that is meant. */
const isWithinAccount = (account: string | undefined, meant: string): boolean =>
  account !== undefined && `/${account}/`.includes(`/${meant}/`);

const hasLabel = (labels: HeadersOut, meant: string): boolean => {
  for (const name in labels)
    if (labels[name] !== undefined && `${name}=${labels[name]}` === meant) return true;
  return false;
};

/** Whether these are what a query asks for, as far as facts can tell. */
export const matchesDimensions = (of: RowDimensions, query: LedgerQuery): boolean =>
  (query.key === undefined || of.key === query.key) &&
  (query.account === undefined || isWithinAccount(of.account, query.account)) &&
  (query.provider === undefined || of.provider === query.provider) &&
  (query.model === undefined ||
    of.model === query.model ||
    `${of.provider}/${of.model}` === query.model) &&
  (query.label === undefined || hasLabel(of.labels, query.label)) &&
  (query.credential === undefined || of.credential === query.credential) &&
  (query.frontend === undefined || of.frontend === query.frontend) &&
  (query.outcome === undefined || of.outcome === query.outcome);
