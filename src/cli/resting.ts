// What is known against a target or a plugin, in words.
import type { RestingStatus } from "../gateway/types.ts";
import type { QuarantinedHook } from "../plugin/notice.ts";
import { moment } from "./terminal.ts";

export const sayRest = ({ state, why, until }: Omit<RestingStatus, "what">): string =>
  `${WORDS[state]} (${why})${state === "half_open" ? "" : ` until ${moment(until)}`}`;

const WORDS: { readonly [S in RestingStatus["state"]]: string } = {
  refused: "its credential was refused: it rests",
  told: "it rests as its provider asked",
  open: "it fails: not asked",
  half_open: "it failed: the next call goes to see",
  recovering: "it answers again, and is asked a little more each time",
};

export const sayQuarantine = ({ plugin, hook, why, until }: QuarantinedHook): string =>
  `${plugin} (${hook}): ${FAILED[why]} again and again, not asked until ${moment(until)}`;

const FAILED: { readonly [W in QuarantinedHook["why"]]: string } = {
  threw: "it threw",
  slow: "it took too long",
  invalid: "it gave what cannot be used",
};
