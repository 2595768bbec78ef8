import { fail } from "../../model/error.ts";
import type { ModelAnswer, ModelEvent } from "../../model/event.ts";
import type { Block, ImageRequest, Media } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCall } from "../call.ts";
import { blame } from "../upstream/blame.ts";

const wanted = (x: Exchange): ImageRequest["want"] | undefined =>
  x.kind === "image" && x.op === "generate" ? (x.request as ImageRequest).want : undefined;

/** An address is a file that is kept, here or with the provider: nothing for a request that asks for privacy. */
export function permit(x: Exchange): void {
  if (x.privacy !== "off" && wanted(x) === "url")
    fail(
      "invalid",
      "An address would keep the picture, which Service-ZDR rules out. Ask for response_format b64_json.",
      { code: "zdr_feature_conflict", param: "response_format" },
    );
}

/** The answer with its pictures in the form that was asked for; nothing, when they are in it already. */
export function inWantedForm(
  call: HostCall,
  answer: ModelAnswer,
): Promise<ModelAnswer> | undefined {
  const want = wanted(call.exchange);
  if (want === undefined) return undefined;
  const wrong = (block: Block) =>
    block.type === "image" &&
    "url" in block.media !== (want === "url") &&
    !("fileId" in block.media);
  if (!answer.blocks.some(wrong)) return undefined;
  return Promise.all(
    answer.blocks.map(async (block) =>
      block.type === "image" && wrong(block)
        ? { ...block, media: await turned(call, block.media) }
        : block,
    ),
  ).then((blocks) => ({ ...answer, blocks }));
}

/** A stream has no addresses in it: a picture that comes as one is fetched, and what follows it waits. */
export function withBytes(
  call: HostCall,
  emit: (event: ModelEvent) => void,
  sink: { readonly tally: { ended: boolean }; broke(problem: unknown): void },
): (event: ModelEvent) => void {
  if (wanted(call.exchange) === undefined) return emit;
  let before: Promise<unknown> | undefined;
  return (event) => {
    const fetching =
      event.type === "media" && "url" in event.media ? turned(call, event.media) : undefined;
    if (!before && !fetching) return emit(event);
    // Upstream may end its message now, although a picture is still being fetched.
    if (event.type === "finish") sink.tally.ended = true;
    before = Promise.all([fetching, before]).then(([media]) =>
      emit(event.type === "media" && media ? { ...event, media } : event),
    );
    before.catch((problem: unknown) => sink.broke(problem));
  };
}

async function turned(call: HostCall, media: Media): Promise<Media> {
  const { pictures } = call.exchange["~"].gen;
  const mime = media.mime;
  if ("url" in media) {
    if (media.url.startsWith("data:")) {
      const [, type, base64] = /^data:([^;,]+);base64,(.*)$/s.exec(media.url) ?? [];
      return {
        mime: type,
        base64: base64 ?? fail("upstream", "The provider's picture cannot be read."),
      };
    }
    const { base } = call.candidate["~"].endpoint.endpoint;
    const got = await pictures.get(media.url, call.signal, base && new URL(base).origin);
    return { mime: got.mime, bytes: got.bytes };
  }
  if ("fileId" in media) return media;
  const bytes = "bytes" in media ? media.bytes : Buffer.from(media.base64, "base64");
  const url = await pictures
    .keep(bytes, mime, call.exchange.identity?.id)
    .catch((problem: unknown) => Promise.reject(blame(problem, "gateway")));
  return { mime, url };
}
