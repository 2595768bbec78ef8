// tollgate/testing: what judges a plugin or a protocol, for its author and for us. No test runner in it: a check is a name
// and a function, a fake upstream is a server on a loopback port.
// May import: plugin, model, protocols, lib, and of the gateway the one function that starts it. May not: config, loader, walk.
export {
  bomb,
  eventStream,
  html,
  json,
  type ScriptedAnswer,
  type Cut,
  type Piece,
} from "./answer.ts";
export { answering, asking, type ReportedLoss, type LossLog } from "./asking.ts";
export { type Check } from "./check.ts";
export { cut, type Chunks } from "./chunks.ts";
export { decode, decodeWhole, encode, essence, plain, relay, type RelayResult } from "./codec.ts";
export { conformance, type ConformanceOptions } from "./conformance.ts";
export { context, type TestContextOptions, type LogLine, type TestContext } from "./context.ts";
export { failing, type FailureOptions } from "./failing.ts";
export { freeze } from "./freeze.ts";
export { gateway, type GatewayOf, type TestGateway } from "./gateway.ts";
export {
  startGateway,
  type AskManner,
  type HeardAnswer,
  type GatewaySetup,
  type BilledCall,
  type StartedGateway,
} from "./start-gateway.ts";
export { hookTester, type CaseRequest, type HookCases, type StreamCase } from "./hook-tester.ts";
export { grammar } from "./grammar.ts";
export { outgoing, sending, type TestOutgoing } from "./outgoing.ts";
export * as pretend from "./pretend.ts";
export { protocolLaws, type ProtocolLaws } from "./protocol-laws.ts";
export { recordings, replay, type ExpectedAnswer, type Recording } from "./recording.ts";
export { recorded, written, type RecordedExchange, type RecordingOptions } from "./record.ts";
export { liveCheck, liveChecks, type LiveOptions } from "./live.ts";
export { random } from "./random.ts";
export {
  call,
  refuse,
  say,
  speaking,
  spokenAt,
  think,
  toolResults,
  type Speech,
  type SpokenProtocol,
} from "./speech.ts";
export { type Manner, type SpokenItem } from "./spoken.ts";
export {
  upstream,
  type UpstreamRequest,
  type UpstreamBill,
  type Reaction,
  type ScriptedRoute,
  type ScriptedRoutes,
  type TestUpstream,
} from "./upstream.ts";
export { storeIn } from "./store-in.ts";
export {
  fleetConformance,
  storeConformance,
  type FleetUnderTest,
  type StoreUnderTest,
} from "./store.ts";
