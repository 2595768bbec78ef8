// URLs of Vertex locations and models.
import { fail } from "tollgate/plugin";

/** Returns the host of a location. Multi-regions and the global location have their own hosts. */
export function hostOf(location: string): string {
  if (location === "global") return "https://aiplatform.googleapis.com";
  if (location === "us" || location === "eu")
    return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
}

/** Returns the URL path of a publisher's model. The model name is one encoded segment. */
export function modelUrl(publisher: string, model: string, verb: string): string {
  const name = bareName(model);
  if (name === "" || name === "." || name === "..")
    fail("not_found", `Model ${model} not found.`, { param: "model", code: "model_not_found" });
  return `/publishers/${publisher}/models/${encodeURIComponent(name).replaceAll("%40", "@")}:${verb}`;
}

const PUBLISHER_PREFIX = /^publishers\/(?:google|anthropic)\/models\//;
/** Returns the name without its publisher prefix: "publishers/google/models/x" is "x". */
export const bareName = (model: string): string => model.replace(PUBLISHER_PREFIX, "");

export const isClaude = (model: string): boolean => bareName(model).startsWith("claude-");
/**
 * Whether the model is from another publisher. Such names contain the publisher: "meta/llama-…".
 */
export const isPartner = (model: string): boolean => bareName(model).includes("/");
/** Whether the name is the name of a text embedding model. */
export const isEmbeddingModel = (model: string): boolean =>
  /^(?:text(?:-multilingual)?-embedding-|gemini-embedding-)/.test(bareName(model));
export const isGemini = (model: string): boolean =>
  !isClaude(model) && !isPartner(model) && !isEmbeddingModel(model);
