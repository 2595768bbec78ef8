// Our own configs with the constructs of other gateways' example configs: thirty and more per
// gateway.
import { BIFROST } from "./bifrost.ts";
import { LITELLM } from "./litellm.ts";
import { PORTKEY } from "./portkey.ts";

/** Config texts by name. Each is imported with `--name assistant`. */
export type Corpus = Readonly<Record<string, string>>;

export const CORPUS: Readonly<Record<"litellm" | "portkey" | "bifrost", Corpus>> = {
  litellm: LITELLM,
  portkey: PORTKEY,
  bifrost: BIFROST,
};
