// How a row was kept in the first version of the file: a table with a column for everything.
import type { BillPart } from "tollgate/plugin";
import type { Row } from "../book/row.ts";

export const COLUMNS = [
  "seq",
  "kind",
  "attempt",
  "nth",
  "request",
  "n",
  "at",
  "instance",
  "key",
  "provider",
  "model",
  "protocol",
  "credential",
  "privacy",
  "labels",
  "price",
  "asked",
  "taken",
  "hold",
  "usage",
  "cost",
  "state",
  "outcome",
  "upstream_id",
  "upstream_cost",
  "parts",
  "finish",
  "ms",
  "reason",
  "actor",
] as const;

/** All values are text here, as the chain of hashes had them. */
export type FirstForm = readonly (string | null)[];

export function fromFirstForm(values: FirstForm): Row {
  const s = Object.fromEntries(COLUMNS.map((column, i) => [column, values[i]])) as {
    [C in (typeof COLUMNS)[number]]: string | null;
  };
  return {
    kind: s.kind as Row["kind"],
    attempt: s.attempt!,
    request: s.request!,
    n: Number(s.n),
    at: Number(s.at),
    instance: s.instance!,
    key: s.key!,
    target: {
      provider: s.provider!,
      model: s.model!,
      protocol: s.protocol,
      credential: s.credential!,
    },
    privacy: s.privacy as Row["privacy"],
    labels: parse(s.labels)!,
    price: s.price,
    asked: parse(s.asked),
    taken: parse<[string, string][]>(s.taken)!.map(([id, take]) => [id, BigInt(take)] as const),
    holdNano: amount(s.hold),
    usage: parse(s.usage)!,
    costNano: amount(s.cost),
    state: s.state as Row["state"],
    outcome: s.outcome!,
    upstreamId: s.upstream_id ?? undefined,
    upstreamCostNano: amount(s.upstream_cost) ?? undefined,
    parts: parse<(Omit<BillPart, "costNano"> & { costNano: string | null })[]>(s.parts)?.map(
      (part) => ({ ...part, costNano: amount(part.costNano) }),
    ),
    finish: s.finish ?? undefined,
    ms: parse(s.ms),
    reason: s.reason ?? undefined,
    actor: s.actor ?? undefined,
  };
}

const parse = <T>(text: string | null): T | undefined =>
  text === null ? undefined : (JSON.parse(text) as T);
const amount = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
