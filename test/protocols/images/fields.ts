// Fields of an image editing request: rows of docs/reference/translation/other-operations.md.
import type { Body, JsonObject, Protocol } from "tollgate/plugin";
import { geminiImage } from "tollgate/protocols/gemini";
import { imageEdits, images, xaiImageEdits } from "tollgate/protocols/images";
import { ALL_ROWS } from "../../../plugins/providers/provider-rows.ts";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const xai = ALL_ROWS.find(({ name }) => name === "xai")!.protocols["xai-edits"]!;

const WIRES: Wires = {
  "compatible hosts": images({ edits: true }),
  OpenAI: images({ edits: true, responseFormat: "bytes", dropFields: ["style"], maxImages: 10 }),
  xAI: xaiImageEdits(xai),
  Gemini: geminiImage() as Protocol,
};

const DOT = "data:image/png;base64,iVBORw0KGgo=";
const ONE = { image_url: DOT };
const AT = { image_url: "https://example.com/house.png" };
const LEAST = { model: "m", prompt: "More snow", images: [ONE] };

const ROWS: readonly Row<object>[] = [
  ["several images", { images: [ONE, ONE] }],
  ["image by URL", { images: [AT] }],
  ["stored image", { images: [{ file_id: "file-1" }] }],
  ["mask", { mask: ONE }],
  ["n > 1", { n: 2 }],
  ["size", { size: "1024x1536" }],
  ["quality", { quality: "high" }],
  ["background: transparent", { background: "transparent" }],
  ["output_format: webp", { output_format: "webp" }],
  ["output_compression", { output_compression: 50 }],
  ["input_fidelity", { input_fidelity: "high" }],
  ["moderation", { moderation: "low" }],
  ["seed", { seed: 7 }],
  ["user", { user: "u" }],
];

export function table(): string {
  const { server } = imageEdits();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
    { action: "edits" },
  );
}
