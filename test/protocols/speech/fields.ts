// Fields of a speech request: rows of docs/reference/translation/other-operations.md.
import type { Body, JsonObject } from "tollgate/plugin";
import { speech } from "tollgate/protocols/speech";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const WIRES: Wires = {
  "compatible hosts": speech(),
  OpenAI: speech({ events: ["gpt-*"] }),
};

const LEAST = { model: "m", input: "a text", voice: "alloy" };

const ROWS: readonly Row<object>[] = [
  ["voice", { voice: "sage" }],
  ["custom voice", { voice: { id: "voice_1" } }],
  ["instructions", { instructions: "Whisper." }],
  ["response_format", { response_format: "flac" }],
  ["speed", { speed: 1.5 }],
  ["unknown fields", { pitch: 2 }],
];

export function table(): string {
  const { server } = speech();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
