// Microphone and speaker of the Realtime playground: 16-bit PCM at 24 kHz, as base64.

export const SAMPLE_RATE = 24_000;
/** Samples per block of the microphone. */
const BLOCK = 4_096;

/** Whether this browser can record. Pages without TLS can do so only on the same machine. */
export const canRecord = (): boolean => navigator.mediaDevices?.getUserMedia !== undefined;

export interface Microphone {
  stop(): void;
}

/** Records until it is stopped. Rejects if the reader does not allow it. */
export async function startMicrophone(onAudio: (base64: string) => void): Promise<Microphone> {
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true },
  });
  // Some browsers record only at the rate of the device.
  const context = new AudioContext();
  const source = context.createMediaStreamSource(stream);
  // An audio worklet would need a second script, and this page has one.
  const recorder = context.createScriptProcessor(BLOCK, 1, 1);
  recorder.addEventListener("audioprocess", ({ inputBuffer }) =>
    onAudio(encodeAudio(resample(inputBuffer.getChannelData(0), context.sampleRate))),
  );
  source.connect(recorder);
  recorder.connect(context.destination);
  return {
    stop() {
      recorder.disconnect();
      source.disconnect();
      for (const track of stream.getTracks()) track.stop();
      void context.close();
    },
  };
}

/** Plays pieces of audio one after the other. */
export class Speaker {
  readonly #context = new AudioContext();
  readonly #playing = new Set<AudioBufferSourceNode>();
  #endsAt = 0;

  play(base64: string): void {
    const samples = decodeAudio(base64);
    if (samples.length === 0) return;
    const buffer = this.#context.createBuffer(1, samples.length, SAMPLE_RATE);
    buffer.copyToChannel(samples, 0);
    const node = this.#context.createBufferSource();
    node.buffer = buffer;
    node.connect(this.#context.destination);
    node.addEventListener("ended", () => this.#playing.delete(node));
    const at = Math.max(this.#context.currentTime, this.#endsAt);
    node.start(at);
    this.#endsAt = at + buffer.duration;
    this.#playing.add(node);
  }

  /** Stops what plays, because the reader speaks. */
  silence(): void {
    for (const node of this.#playing) node.stop();
    this.#playing.clear();
    this.#endsAt = 0;
  }

  close(): void {
    this.silence();
    void this.#context.close();
  }
}

/** Converts samples to 24 kHz, by linear interpolation. */
export function resample(samples: Float32Array, rate: number): Float32Array<ArrayBuffer> {
  const step = rate / SAMPLE_RATE;
  const out = new Float32Array(Math.floor(samples.length / step));
  for (let i = 0; i < out.length; i++) {
    const at = i * step;
    const before = Math.floor(at);
    const first = samples[before] ?? 0;
    const second = samples[before + 1] ?? first;
    out[i] = first + (second - first) * (at - before);
  }
  return out;
}

export function encodeAudio(samples: Float32Array): string {
  const view = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((sample, i) =>
    view.setInt16(i * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true),
  );
  let binary = "";
  for (const byte of new Uint8Array(view.buffer)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function decodeAudio(base64: string): Float32Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from(
    { length: bytes.length >> 1 },
    (_, i) => view.getInt16(i * 2, true) / 32_768,
  );
}
