// Fields of a transcription request: rows of docs/reference/translation/other-operations.md.
import type { Body } from "tollgate/plugin";
import { transcriptions } from "tollgate/protocols/transcriptions";
import openai from "../../../plugins/providers/openai.ts";
import { ALL_ROWS } from "../../../plugins/providers/provider-rows.ts";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const row = (name: string) =>
  transcriptions(ALL_ROWS.find((one) => one.name === name)!.protocols.transcriptions);

/** Like OpenAI's own provider, for one of its models. */
function ofOpenai(model: string): ReturnType<typeof transcriptions> {
  const { endpoints } = openai.setup(
    { base_url: "https://api.openai.com/v1" } as never,
    {} as never,
  ) as {
    endpoints: readonly { protocol: ReturnType<typeof transcriptions> }[];
  };
  const { protocol } = endpoints.find((one) => one.protocol.id === "transcriptions")!;
  const { client } = protocol;
  return {
    ...protocol,
    client: {
      ...client!,
      prepare: (out, of) =>
        client!.prepare!(out, { ...of, reportLoss: of.reportLoss.bind(of), model }),
    },
  };
}

const WIRES: Wires = {
  "compatible hosts": transcriptions(),
  "OpenAI, whisper-1": ofOpenai("whisper-1"),
  "OpenAI, gpt-4o-transcribe": ofOpenai("gpt-4o-transcribe"),
  Groq: row("groq"),
  Mistral: row("mistral"),
};

const LEAST: Body = {
  model: "m",
  file: { filename: "a.wav", mime: "audio/wav", data: Buffer.from("RIFF") },
};

const ROWS: readonly Row<object>[] = [
  ["language", { language: "en" }],
  ["prompt", { prompt: "Names: Anna" }],
  ["temperature", { temperature: "0.2" }],
  ["response_format: text", { response_format: "text" }],
  ["response_format: srt", { response_format: "srt" }],
  ["response_format: verbose_json", { response_format: "verbose_json" }],
  ["response_format: diarized_json", { response_format: "diarized_json" }],
  ["timestamp_granularities", { timestamp_granularities: ["word"] }],
  ["include", { include: ["logprobs"] }],
  ["chunking_strategy", { chunking_strategy: "auto" }],
  ["known_speaker_names", { known_speaker_names: ["Anna"] }],
  ["unknown fields", { diarize: "true" }],
];

export function table(): string {
  const { server } = transcriptions();
  const read = (more: object) => server!.decodeRequest({ ...LEAST, ...more } as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
