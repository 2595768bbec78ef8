// What a client may say of a text that is to be spoken, and what becomes of it with each vendor: the README's table.
import type { Body, JsonObject } from "tollgate/plugin";
import { speech } from "tollgate/protocols/speech";
import { table as verdicts, type Row, type Wires } from "../verdicts.ts";

const WIRES: Wires = {
  "compatible hosts": speech(),
  OpenAI: speech({ events: ["gpt-*"] }),
};

const LEAST = { model: "m", input: "a text", voice: "alloy" };

const ROWS: readonly Row<object>[] = [
  ["a voice", { voice: "sage" }],
  ["a voice that was made to order", { voice: { id: "voice_1" } }],
  ["instructions", { instructions: "Whisper." }],
  ["response_format", { response_format: "flac" }],
  ["speed", { speed: 1.5 }],
  ["what is newer than us", { pitch: 2 }],
];

export function table(): string {
  const { server } = speech();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    "speech",
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
