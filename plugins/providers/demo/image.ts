import { fail, type Call, type ImageRequest, type Media, type ModelEvent } from "tollgate/plugin";
import { requireSupported, sizeOf } from "tollgate/protocols/images";
import { digestOf } from "./seeded-random.ts";
import { createScene } from "./landscape.ts";
import { png } from "./png.ts";

/** Returns the digest of an input image, so that other input gives another image. */
function bytesOf(media: Media): string {
  if ("url" in media || "fileId" in media)
    return fail("unsupported", "demo/image is offline. Send the image data instead of a URL.", {
      param: "image",
    });
  return digestOf("base64" in media ? media.base64 : media.bytes.toString("base64"));
}

const USUAL = { width: 512, height: 512 };
/** Cell sizes of partial images, from coarse to fine. */
const PARTIAL = [64, 32, 16];
const CELLS: Readonly<Record<string, number>> = { low: 8, medium: 2, standard: 2, auto: 2 };

/** Returns images. The same prompt and seed give the same image, bit for bit. */
export async function* image(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "image")
    fail("not_found", `Model demo/${call.model} does not support images. Use demo/image.`, {
      code: "model_not_found",
      param: "model",
    });
  const seen = [...r.inputImages, ...(r.mask ? [r.mask] : [])].map(bytesOf);
  requireSupported({ n: r.n, size: r.size, quality: r.quality, format: r.format }, call.info);
  for (const field of Object.keys((r.ext["images"] ?? {}) as object))
    call.reportLoss(field, "dropped");
  const size = sizeOf(r.size) ?? USUAL;
  const transparent = r.background === "transparent";
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  for (let index = 0; index < r.n; index++) {
    const of = createScene(size.width / size.height, r.seed ?? null, r.prompt, index, ...seen);
    const drawn = async (cell: number) => {
      if (call.signal.aborted) fail("canceled", "The request was canceled.");
      return { bytes: await png(of, { ...size, cell, transparent }), mime: "image/png" };
    };
    yield { type: "open", index, block: { type: "image" } };
    if (r.stream)
      for (const cell of PARTIAL.slice(0, r.partialImages ?? 0))
        yield { type: "media", index, media: await drawn(cell), partial: true };
    yield { type: "media", index, media: await drawn(CELLS[r.quality ?? "auto"] ?? 1) };
    yield { type: "close", index };
  }
  yield {
    type: "usage",
    usage: { images: r.n, megapixels: (r.n * size.width * size.height) / 1e6 },
  };
  yield { type: "finish", reason: "stop" };
}
