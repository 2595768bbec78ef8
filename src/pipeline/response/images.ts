import { fail } from "../../model/error.ts";
import type { ModelResponse, ModelEvent } from "../../model/event.ts";
import type { Block, ImageRequest, Media } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCall } from "../exchange/call.ts";
import { attributeFault } from "../faults/fault-source.ts";

const requestedForm = (x: Exchange): ImageRequest["responseFormat"] | undefined =>
  x.operation === "image" && x.actionType === "generate"
    ? (x.request as ImageRequest).responseFormat
    : undefined;

/**
 * Throws if a private request asks for image URLs. A URL requires a file that is stored, by the
 * gateway or by the provider.
 */
export function rejectImageUrlUnderZdr(x: Exchange): void {
  if (x.privacy !== "off" && requestedForm(x) === "url")
    fail(
      "invalid",
      "An image URL would store the image, which Service-ZDR does not allow. Use " +
        'response_format "b64_json".',
      { code: "zdr_feature_conflict", param: "response_format" },
    );
}

/**
 * Converts the images of a response to the requested form. Returns undefined if they already have
 * it.
 */
export function convertImages(
  call: HostCall,
  answer: ModelResponse,
): Promise<ModelResponse> | undefined {
  const form = requestedForm(call.exchange);
  if (form === undefined) return undefined;
  const needsConversion = (block: Block) =>
    block.type === "image" &&
    "url" in block.media !== (form === "url") &&
    !("fileId" in block.media);
  if (!answer.blocks.some(needsConversion)) return undefined;
  return Promise.all(
    answer.blocks.map(async (block) =>
      block.type === "image" && needsConversion(block)
        ? { ...block, media: await convertMedia(call, block.media) }
        : block,
    ),
  ).then((blocks) => ({ ...answer, blocks }));
}

/**
 * Fetches images of a stream that arrive as URLs, because a stream to the client contains no URLs.
 * Later events wait for the image.
 */
export function fetchStreamedImages(
  call: HostCall,
  emit: (event: ModelEvent) => void,
  sink: { readonly tally: { hasFinished: boolean }; onError(problem: unknown): void },
): (event: ModelEvent) => void {
  if (requestedForm(call.exchange) === undefined) return emit;
  let before: Promise<unknown> | undefined;
  return (event) => {
    const fetching =
      event.type === "media" && "url" in event.media ? convertMedia(call, event.media) : undefined;
    if (!before && !fetching) return emit(event);
    // The provider may now end its message although an image is still being fetched.
    if (event.type === "finish") sink.tally.hasFinished = true;
    before = Promise.all([fetching, before]).then(([media]) =>
      emit(event.type === "media" && media ? { ...event, media } : event),
    );
    before.catch((problem: unknown) => sink.onError(problem));
  };
}

async function convertMedia(call: HostCall, media: Media): Promise<Media> {
  const { imageFiles } = call.exchange.state.gen;
  const mime = media.mime;
  if ("url" in media) {
    if (media.url.startsWith("data:")) {
      const [, type, base64] = /^data:([^;,]+);base64,(.*)$/s.exec(media.url) ?? [];
      return {
        mime: type,
        base64: base64 ?? fail("upstream", "The provider's image cannot be decoded."),
      };
    }
    const { base } = call.candidate.mounted.endpoint.definition;
    const image = await imageFiles.fetch(media.url, call.signal, base && new URL(base).origin);
    return { mime: image.contentType, bytes: image.bytes };
  }
  if ("fileId" in media) return media;
  const bytes = "bytes" in media ? media.bytes : Buffer.from(media.base64, "base64");
  const url = await imageFiles
    .store(bytes, mime, call.exchange.identity?.id)
    .catch((problem: unknown) => Promise.reject(attributeFault(problem, "gateway")));
  return { mime, url };
}
