// tollgate/protocols/ollama: Ollama's own API, as far as what it imitates does not say it. Client halves alone. Pure: no I/O, no
// clock, nothing remembered between two methods. May import: model, plugin (types), and the tools its neighbours lend.
import { embeddingWork } from "../../model/embedding-work.ts";
import { completionWork } from "../../model/completion-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { notStreamed } from "../embeddings/index.ts";
import { failure } from "../failure/failure.ts";
import { plain } from "../look/index.ts";
import { knows, request, whole } from "./embed.ts";
import {
  generateCap,
  generateRequest,
  generateStream,
  generateSurvey,
  generateWhole,
  knowsGenerate,
} from "./generate.ts";

/** `POST /api/embed`. */
export const ollamaEmbeddings = (): Protocol<"embedding"> => ({
  id: "ollama-embed",
  work: embeddingWork,
  reviewed: [
    ["which model", plain("model")],
    ["what is to be embedded", plain("input")],
    ["the form of the vectors", plain("dimensions")],
    ["what becomes of a text that is too long", plain("truncate")],
  ],
  client: {
    paths: { generate: "/api/embed" },
    request,
    knows,
    stream: notStreamed,
    whole,
    fault: failure,
  },
});

/** `POST /api/generate`, which fills in where there is a suffix. */
export const ollamaCompletions = (): Protocol<"completion"> => ({
  id: "ollama-generate",
  work: completionWork,
  reviewed: [
    ["which model", plain("model")],
    ["what goes on, and what it shall lead to", plain("prompt suffix stream")],
    [
      "steers one answer and is gone with it",
      { options: plain("num_predict stop temperature top_p seed") },
    ],
  ],
  client: {
    paths: { generate: "/api/generate" },
    request: generateRequest,
    knows: knowsGenerate,
    survey: generateSurvey,
    stream: generateStream,
    whole: generateWhole,
    fault: failure,
    cap: generateCap,
    thinks: () => false,
  },
});
