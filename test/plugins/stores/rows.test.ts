// A row that goes into columns and comes back is the same row: what goes without saying is said again.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  columnsOf,
  rowOf,
  type Columns,
  type Found,
} from "../../../plugins/stores/postgres/rows.ts";
import { COLUMNS } from "../../../plugins/stores/postgres/tables.ts";
import { UNSAID, type LedgerRow } from "../../../src/store/index.ts";

const word = fc.oneof(fc.constantFrom("messages", "responses", "r.1", "", "."), fc.string());
const named = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(word, fc.nat(12)).map(([request, n]) => ({ request, n })) },
  fc.record({ request: word, n: fc.oneof(fc.integer(), fc.constantFrom(1.5, 1e21, -1)) }),
);
const said = fc.record({
  named,
  attempt: fc.option(fc.constantFrom("r.1", "r.01", "r.-1", "r.1.5", "r", ".0", "r\n.2"), {
    freq: 3,
    nil: undefined,
  }),
  protocol: fc.option(word),
  privacy: fc.constantFrom("off" as const, "zdr" as const),
  asked: fc.option(
    fc.record(
      {
        model: word,
        frontend: fc.constantFrom("messages", "chat"),
        protocol: word,
        lane: fc.constantFrom("verbatim" as const, "translated" as const),
        stream: fc.boolean(),
        basis: fc.string(),
      },
      { requiredKeys: ["model", "frontend", "protocol", "lane", "stream"] },
    ),
    { nil: undefined },
  ),
  taken: fc.array(fc.tuple(word, fc.bigInt(0n, 99n)), { maxLength: 2 }),
});
const found = (columns: Columns, reserved: string | null): Found =>
  ({
    ...Object.fromEntries(COLUMNS.map((name, i) => [name, columns[i]])),
    reserved,
    instance: "one",
  }) as unknown as Found;
const REST = COLUMNS.indexOf("rest");

it("a reserve, its settle, and a settle whose reserve is elsewhere", () => {
  fc.assert(
    fc.property(said, ({ named: { request, n }, attempt, protocol, privacy, asked, taken }) => {
      const row: LedgerRow = {
        ...UNSAID,
        kind: "reserve",
        attempt: attempt ?? `${request}.${n}`,
        request,
        n,
        at: 1_000,
        instance: "one",
        key: "alice",
        target: { provider: "openai", model: "gpt", protocol, credential: "c" },
        privacy,
        labels: {},
        account: undefined,
        price: null,
        asked,
        taken,
        holdNano: 5n,
        usage: {},
        costNano: null,
        state: "open",
        outcome: "",
      } as never;
      const columns = columnsOf(row, row.at);
      expect(rowOf(found(columns, null))).toEqual(row);
      const settle: LedgerRow = { ...row, kind: "settle", state: "exact", taken: [], costNano: 3n };
      expect(rowOf(found(columnsOf(settle, row.at), columns[REST]!))).toEqual(settle);
      expect(rowOf(found(columnsOf(settle, row.at, true), null))).toEqual(settle);
    }),
    { numRuns: 500 },
  );
});
