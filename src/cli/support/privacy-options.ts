// The options --zdr and --strict, which simulate the header Service-ZDR.
import type { Privacy } from "../../model/facts.ts";
import type { CliInput, Options } from "./command.ts";

export const PRIVACY_OPTIONS: Options = {
  zdr: { description: "Simulate a request with the header Service-ZDR: required" },
  strict: { description: "Simulate a request with the header Service-ZDR: strict" },
};

export const readPrivacy = (given: CliInput): Privacy =>
  given.has("strict") ? "strict" : given.has("zdr") ? "required" : "off";
