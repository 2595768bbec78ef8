// Fields of a rerank request: rows of docs/reference/translation/other-operations.md.
import type { Body, JsonObject } from "tollgate/plugin";
import { rerank, voyageRerank } from "tollgate/protocols/rerank";
import { ALL_ROWS } from "../../../plugins/providers/provider-rows.ts";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const row = (name: string) =>
  rerank(ALL_ROWS.find((one) => one.name === name)!.protocols.rerank ?? {});

const WIRES: Wires = {
  "compatible hosts": rerank(),
  Cohere: row("cohere"),
  Voyage: voyageRerank(),
};

const LEAST = { model: "m", query: "q", documents: ["one", "two"] };

const ROWS: readonly Row<object>[] = [
  ["documents as objects with a text", { documents: [{ text: "one" }, { text: "two" }] }],
  ["documents as other objects", { documents: [{ image: "https://example.com/a.png" }] }],
  ["top_n", { top_n: 1 }],
  ["top_k", { top_k: 1 }],
  ["return_documents", { return_documents: true }],
  ["max_tokens_per_doc", { max_tokens_per_doc: 512 }],
  ["truncation: true", { truncation: true }],
  ["truncation: false", { truncation: false }],
  ["user", { user: "u" }],
];

export function table(): string {
  const { server } = rerank();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
