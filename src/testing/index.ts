// tollgate/testing: checks for plugins and protocols, for their authors and for Tollgate itself. It
// contains no test runner: a check is a name and a function, and a fake upstream is a server on a
// loopback port. It may import plugin, model, protocols, and lib, and the function that starts the
// gateway. It must not import the config, the loader, or the pipeline.
export {
  compressionBomb,
  eventStreamResponse,
  htmlResponse,
  jsonResponse,
  type ScriptedResponse,
  type Truncation,
  type ResponsePiece,
} from "./upstream/scripted-response.ts";
export {
  createResponseContext,
  createCallContext,
  type ReportedLoss,
  type LossLog,
} from "./codec-contexts.ts";
export { type Check } from "./check.ts";
export { splitChunks, type Chunks } from "./upstream/script-pieces.ts";
export {
  decode,
  decodeWhole,
  encodeText,
  comparableContent,
  withoutUndefined,
  runRelay,
  type RelayResult,
} from "./codec.ts";
export { conformanceChecks, type ConformanceOptions } from "./conformance.ts";
export {
  createTestContext,
  type TestContextOptions,
  type LogLine,
  type TestContext,
} from "./context.ts";
export { errorResponse, type ErrorResponseOptions } from "./error-response.ts";
export { deepFreeze } from "./freeze.ts";
export { startTestGateway, type TestGatewayOptions, type TestGateway } from "./gateway.ts";
export {
  startGateway,
  type AskOptions,
  type ClientAnswer,
  type GatewaySetup,
  type BilledCall,
  type StartedGateway,
} from "./start-gateway.ts";
export { hookChecks, type CaseRequest, type HookCases, type StreamCase } from "./hook-tester.ts";
export { createEventGrammar } from "./event-grammar.ts";
export { createOutgoing, encodeOutgoing, type TestOutgoing } from "./outgoing.ts";
export * as fakes from "./fakes.ts";
export { protocolChecks, type ProtocolCheckOptions } from "./protocol-laws.ts";
export {
  readRecordings,
  replayResponse,
  type ExpectedAnswer,
  type Recording,
} from "./recording.ts";
export {
  recordProvider,
  writeRecordings,
  type RecordedExchange,
  type RecordingOptions,
} from "./record-provider.ts";
export { liveCheck, liveChecks, type LiveOptions } from "./live-checks.ts";
export { createSeededRandom } from "./random.ts";
export {
  call,
  refuse,
  say,
  scriptedModel,
  protocolAtPath,
  think,
  toolResults,
  type ModelScript,
  type ScriptProtocol,
} from "./upstream/model-script.ts";
export { type FormatOptions, type ScriptItem } from "./upstream/script-pieces.ts";
export {
  startUpstream,
  type UpstreamRequest,
  type UpstreamBill,
  type ScriptedReply,
  type ScriptedRoute,
  type ScriptedRoutes,
  type TestUpstream,
} from "./upstream/upstream.ts";
export {
  createBatchApi,
  type BatchApi,
  type BatchApiClientOptions,
  type BatchApiFailure,
  type BatchApiOptions,
} from "./batches/batch-api.ts";
export {
  type BatchApiRequest,
  type BatchApiState,
  type BatchFormat,
  type BatchOutcome,
  type FakeBatch,
  type LineAnswer,
  type SubmittedLine,
  type WrittenResult,
} from "./batches/batch-format.ts";
export { messageBatchFormat } from "./batches/messages-format.ts";
export { openAiBatchFormat } from "./batches/openai-format.ts";
export { createVideoApi, type VideoApi, type VideoApiOptions } from "./videos/video-api.ts";
export {
  type GeneratedVideo,
  type VideoApiState,
  type VideoFormat,
} from "./videos/video-format.ts";
export {
  createBackgroundApi,
  type BackgroundApi,
  type BackgroundApiOptions,
} from "./background/background-api.ts";
export type {
  BackgroundApiState,
  BackgroundFormat,
  FakeResponse,
} from "./background/background-format.ts";
export { openAiBackgroundFormat } from "./background/openai-format.ts";
export { openAiVideoFormat } from "./videos/openai-format.ts";
export { createStoreFactory } from "./store.ts";
export { fleetChecks, storeChecks, type FleetUnderTest, type StoreUnderTest } from "./store.ts";
