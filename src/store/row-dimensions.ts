// Dimensions by which rows are summed: the key, the target, and the outcome of a call. Totals are
// kept at several levels with different dimensions. Keys multiplied by models give many groups, and
// most queries need only one of the two, or neither.
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

/**
 * Dimensions that distinguish groups. A missing value is "" for dimensions that always have a name.
 */
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

/** Fields of a row that totals need. */
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

/** Returns the dimensions of a row. */
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

/**
 * Whether totals include a row: settled calls and their corrections. Open and void calls are
 * included only if the query requests that state.
 */
export const isSettledRow = (
  row: Pick<SummableRow, "kind" | "state">,
  state: LedgerQuery["state"],
): boolean =>
  state === undefined
    ? row.kind !== "reserve" && row.state !== "void"
    : row.kind === (state === "open" ? "reserve" : "settle");

/** Like `isSettledRow`, for dimensions that do not belong to an open call. */
export const isSettledGroup = (
  { state }: RowDimensions,
  requestedState: LedgerQuery["state"],
): boolean => (requestedState === undefined ? state !== "void" : state === requestedState);

/**
 * Dimensions of each level, in addition to the state of a call: target and outcome (`calls`), key
 * and account (`keys`), and labels. Each level can be computed from any level that includes its
 * dimensions.
 */
export const ROLLUP_DIMENSIONS = {
  calls: { calls: true, keys: false, labels: false },
  holders: { calls: false, keys: true, labels: false },
  tags: { calls: false, keys: true, labels: true },
  keys: { calls: true, keys: true, labels: false },
  labels: { calls: true, keys: true, labels: true },
} as const;
/** Level of a rollup: the dimensions that its groups have. */
export type RollupLevel = keyof typeof ROLLUP_DIMENSIONS;
/** Levels, generally from the fewest groups to the most. */
export const ROLLUP_LEVELS = [
  "calls",
  "holders",
  "tags",
  "keys",
  "labels",
] as const satisfies readonly RollupLevel[];

type DimensionGroup = keyof (typeof ROLLUP_DIMENSIONS)[RollupLevel];
/** Dimensions that a grouping requires. State, day, and hour are available at each level. */
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
const groupsByDimension = (by: readonly TotalsBy[], group: DimensionGroup): boolean =>
  by.some((each) => GROUP_REQUIREMENTS[each] === group);

/** Returns the smallest level that can answer a query. Undefined if any level can answer it. */
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
    const included = ROLLUP_DIMENSIONS[depth];
    return (included.calls || !calls) && (included.keys || !keys) && (included.labels || !labels);
  });
}

/** Whether an account, or one of its parent accounts, is the given account. */
const isWithinAccount = (account: string | undefined, meant: string): boolean =>
  account !== undefined && `/${account}/`.includes(`/${meant}/`);

const hasLabel = (labels: HeadersOut, meant: string): boolean => {
  for (const name in labels)
    if (labels[name] !== undefined && `${name}=${labels[name]}` === meant) return true;
  return false;
};

/** Whether dimensions match a query, as far as dimensions can decide. */
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
