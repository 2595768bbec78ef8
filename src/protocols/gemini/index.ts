// The gemini protocol, `generateContent` and its stream: Google's own, of which gateways need the client half only. The
// model and the verb stand in the path. Pure: no I/O, no clock, nothing remembered between two methods. May import:
// model, plugin (types), and the tools its neighbours lend.
import { chatWork } from "../../model/chat-work.ts";
import { imageWork } from "../../model/image-work.ts";
import { fail } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { CallContext, Path, Protocol } from "../../plugin/protocol.ts";
import { traitsOf, type GeminiDialect } from "./dialect.ts";
import { failure } from "../failure/failure.ts";
import { onlyPictures, request as draw } from "./client/image.ts";
import { cap } from "./client/cap.ts";
import { count } from "./client/count.ts";
import { prepare } from "./client/prepare.ts";
import { GeminiReader, type GeminiReaderOptions } from "./client/reader.ts";
import { nameOf, request } from "./client/request.ts";
import { REVIEWED } from "./reviewed.ts";
import { stream } from "./client/stream.ts";
import { whole } from "./client/whole.ts";
import { mayThink } from "../spending.ts";
import { survey } from "./survey.ts";
import { ID, knows } from "./words.ts";

export type { GeminiDialect, GeminiTraits } from "./dialect.ts";

export const gemini = (dialect: GeminiDialect = {}): Protocol<"chat"> => ({
  id: ID,
  work: chatWork,
  reviewed: REVIEWED,
  client: {
    paths: { generate, count: (of) => `/${placed(of.model)}:countTokens` },
    request: (r, of) => request(r, of, traitsOf(dialect, of.model)),
    knows,
    survey,
    stream: (emit, of, headers) => stream(new GeminiReader(emit, of, said(headers, false))),
    whole: (body, emit, of, headers) =>
      whole(body, new GeminiReader(emit, of, said(headers, false))),
    fault: failure,
    count,
    prepare,
    cap,
    thinks: mayThink,
  },
});

/** The same wire, asked for pictures. */
export const geminiImage = (): Protocol<"image"> => ({
  id: `${ID}-image`,
  work: imageWork,
  reviewed: REVIEWED,
  client: {
    paths: { generate },
    request: draw,
    knows,
    survey,
    stream: (emit, of, headers) =>
      stream(new GeminiReader(onlyPictures(emit), of, said(headers, true))),
    whole: (body, emit, of, headers) =>
      whole(body, new GeminiReader(onlyPictures(emit), of, said(headers, true))),
    fault: failure,
    prepare,
  },
});

/** Without `alt=sse` a stream is one JSON list that grows. */
const generate: Path = (of: CallContext) =>
  `/${placed(of.model)}:${of.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;

/** A client chose the name: it must not lead anywhere but to a model. */
function placed(model: string): string {
  const steps = nameOf(model).split("/");
  if (steps.some((step) => step === "" || step === "." || step === ".."))
    fail("not_found", `There is no model ${model}.`, { param: "model", code: "model_not_found" });
  return steps.map((step) => encodeURIComponent(step)).join("/");
}

/** A header tells how the work was really ranked, which is what is billed. */
function said(headers: HeadersIn, draws: boolean): GeminiReaderOptions {
  const tier = headers["x-gemini-service-tier"];
  return { draws, tier: typeof tier === "string" && tier !== "" ? tier : undefined };
}
