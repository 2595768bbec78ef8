// What the workers of a gateway are given.
import type { GatewayConfig } from "../../config/types.ts";
import type { BoundPlace } from "../http/places.ts";
import type { ReadingSource } from "../readings/all.ts";
import type { Services } from "../services/services.ts";

export interface WorkerPoolOptions {
  readonly size: number;
  /** The program that a worker runs. */
  readonly program: string;
  readonly services: Services;
  readonly listen: GatewayConfig["listen"];
  /** Descriptors that were open before we came, for the first of them. */
  readonly handed: readonly number[];
  /** Nothing more is taken there by this process. */
  readonly shut: (place: BoundPlace) => void;
  /** What requests in flight have at an end. */
  readonly drainMs: () => number;
  /** None stays up. */
  readonly broken: (error: Error) => void;
  /** One answers no more. */
  readonly ended: (source: ReadingSource) => void;
}
