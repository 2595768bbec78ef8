// Code that a package with an operation may and may not write.
import {
  chatOperation,
  type Operation,
  type ModelRequest,
  type Protocol,
  type OperationSpec,
} from "tollgate/plugin";
import { fingerprints, fingerprintOperation, type FingerprintRequest } from "./fingerprint.ts";

export const operation: Operation = "fingerprint";
export const request = (r: ModelRequest<"fingerprint">): FingerprintRequest => r;
export const any: Protocol = fingerprints();
export const inputs = (r: ModelRequest): number =>
  r.operation === "fingerprint" ? r.inputs.length : 0;

// @ts-expect-error  a kind that no package has merged
export const unknown: Operation = "ocr";
// @ts-expect-error  the operation spec of another operation
export const mixed: Protocol<"fingerprint"> = { ...fingerprints(), operationSpec: chatOperation };
export const half: OperationSpec<"fingerprint"> = {
  ...fingerprintOperation,
  // @ts-expect-error  an operation spec says when a report is whole
  completeUnitSets: undefined,
};
export const strange: OperationSpec<"fingerprint"> = {
  ...fingerprintOperation,
  // @ts-expect-error  a unit that money does not know
  completeUnitSets: [["vibes"]],
};
export const drawn: OperationSpec<"fingerprint"> = {
  ...fingerprintOperation,
  // @ts-expect-error  a sample is of its own kind
  sampleRequest: (model) => chatOperation.sampleRequest(model),
};
