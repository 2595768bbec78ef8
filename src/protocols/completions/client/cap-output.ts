import type { Outgoing } from "../../../plugin/outgoing.ts";

export const capOutput = (out: Outgoing, tokens: number): void => out.set("max_tokens", tokens);
