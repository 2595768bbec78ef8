// tollgate/testing: what judges a plugin or a protocol, for its author and for us. No test runner in it: a check is a name
// and a function, a fake upstream is a server on a loopback port.
// May import: plugin, model, protocols, lib, and of the gateway the one function that starts it. May not: config, loader, walk.
export { bomb, eventStream, html, json, type Answer, type Cut, type Piece } from "./answer.ts";
export { answering, asking, type Loss, type Lost } from "./asking.ts";
export { type Check } from "./check.ts";
export { cut, type Chunks } from "./chunks.ts";
export { decode, decodeWhole, encode, essence, plain, relay, type Relayed } from "./codec.ts";
export { conformance, type Conforming } from "./conformance.ts";
export { context, type Lent, type Logged, type TestContext } from "./context.ts";
export { failing, type Failing } from "./failing.ts";
export { freeze } from "./freeze.ts";
export { gateway, type GatewayOf, type TestGateway } from "./gateway.ts";
export { grammar } from "./grammar.ts";
export { outgoing, sending, type TestOutgoing } from "./outgoing.ts";
export * as pretend from "./pretend.ts";
export { protocolLaws, type ProtocolLaws } from "./protocol-laws.ts";
export { recordings, replay, type Recording } from "./recording.ts";
export { random } from "./random.ts";
export {
  call,
  refuse,
  say,
  speaking,
  spokenAt,
  think,
  toolResults,
  type Manner,
  type Said,
  type Speech,
  type Spoken,
} from "./speech.ts";
export {
  upstream,
  type Asked,
  type Billed,
  type Reaction,
  type Route,
  type Routes,
  type Upstream,
} from "./upstream.ts";
export { storeConformance, type StoreUnderTest } from "./store.ts";
