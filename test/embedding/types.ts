// What a package that adds a kind may write, and what it may not.
import { chatWork, type Kind, type ModelRequest, type Protocol, type Work } from "tollgate/plugin";
import { embeddings, embeddingWork, type EmbeddingRequest } from "./embedding.ts";

export const kind: Kind = "embedding";
export const request = (r: ModelRequest<"embedding">): EmbeddingRequest => r;
export const any: Protocol = embeddings();
export const inputs = (r: ModelRequest): number => (r.kind === "embedding" ? r.inputs.length : 0);

// @ts-expect-error  a kind that no package has merged
export const unknown: Kind = "rerank";
// @ts-expect-error  the work of another kind
export const mixed: Protocol<"embedding"> = { ...embeddings(), work: chatWork };
// @ts-expect-error  a work says when a report is whole
export const half: Work<"embedding"> = { ...embeddingWork, whole: undefined };
// @ts-expect-error  a unit that money does not know
export const strange: Work<"embedding"> = { ...embeddingWork, whole: [["vibes"]] };
export const drawn: Work<"embedding"> = {
  ...embeddingWork,
  // @ts-expect-error  a sample is of its own kind
  sample: (model) => chatWork.sample(model),
};
