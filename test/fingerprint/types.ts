// What a package that adds a kind may write, and what it may not.
import { chatWork, type Kind, type ModelRequest, type Protocol, type Work } from "tollgate/plugin";
import { fingerprints, fingerprintWork, type FingerprintRequest } from "./fingerprint.ts";

export const kind: Kind = "fingerprint";
export const request = (r: ModelRequest<"fingerprint">): FingerprintRequest => r;
export const any: Protocol = fingerprints();
export const inputs = (r: ModelRequest): number => (r.kind === "fingerprint" ? r.inputs.length : 0);

// @ts-expect-error  a kind that no package has merged
export const unknown: Kind = "ocr";
// @ts-expect-error  the work of another kind
export const mixed: Protocol<"fingerprint"> = { ...fingerprints(), work: chatWork };
// @ts-expect-error  a work says when a report is whole
export const half: Work<"fingerprint"> = { ...fingerprintWork, whole: undefined };
// @ts-expect-error  a unit that money does not know
export const strange: Work<"fingerprint"> = { ...fingerprintWork, whole: [["vibes"]] };
export const drawn: Work<"fingerprint"> = {
  ...fingerprintWork,
  // @ts-expect-error  a sample is of its own kind
  sample: (model) => chatWork.sample(model),
};
