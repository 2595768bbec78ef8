// What a client is told that does not send its request in time.
import type { Rejection } from "./request-guard.ts";

export const HEAD_TIMEOUT: Rejection = {
  status: 408,
  code: "head_timeout",
  message: "The head of the request did not arrive in time.",
};
export const BODY_TIMEOUT: Rejection = {
  status: 408,
  code: "body_timeout",
  message: "The body of the request did not arrive in time.",
};

export const BODY_TOO_SLOW: Rejection = {
  status: 408,
  code: "body_slow",
  message: "The body of the request comes too slowly.",
};
