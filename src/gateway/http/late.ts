// What a client is told that does not send its request in time.
import type { Refusal } from "./door.ts";

export const LATE_HEAD: Refusal = {
  status: 408,
  code: "head_timeout",
  message: "The head of the request did not arrive in time.",
};
export const LATE_BODY: Refusal = {
  status: 408,
  code: "body_timeout",
  message: "The body of the request did not arrive in time.",
};

export const SLOW_BODY: Refusal = {
  status: 408,
  code: "body_slow",
  message: "The body of the request comes too slowly.",
};
