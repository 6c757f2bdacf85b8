// Browsers start no workers in pages that are opened as files. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html><body></body>"
      this.ready = new Promise(resolve => {
        this.frame.onload = () => {
          const inside = this.frame.contentWindow
          inside.postMessage = data => this.receive(new MessageEvent("message", { data }))
          const script = inside.document.createElement("script")
          script.src = new URL(url, document.baseURI).href
          script.onload = () => resolve(inside)
          inside.document.body.append(script)
        }
      })
      document.body.append(this.frame)
    }

    receive(event) {
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    postMessage(data) {
      this.ready.then(inside => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
