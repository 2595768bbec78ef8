// What the workers of a gateway are given.
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { BoundAddress } from "../http/listen-targets.ts";
import type { StatsSource } from "../health/stats-collector.ts";
import type { Services } from "../services.ts";

export interface WorkerPoolOptions {
  readonly size: number;
  /** The program that a worker runs. */
  readonly program: string;
  readonly services: Services;
  readonly listen: GatewayConfig["listen"];
  /** Descriptors that were open before we came, for the first of them. */
  readonly inheritedDescriptors: readonly number[];
  /** Nothing more is taken there by this process. */
  readonly stopAccepting: (place: BoundAddress) => void;
  /** What requests in flight have at an end. */
  readonly shutdownTimeoutMs: () => number;
  /** None stays up. */
  readonly onFailed: (error: Error) => void;
  /** One answers no more. */
  readonly onWorkerExit: (source: StatsSource) => void;
}
