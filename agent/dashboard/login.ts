// If a redirect has no fragment, the browser keeps the fragment of the requested address. So a link still opens its drain after sign-in.
document.querySelector('form')?.setAttribute('action', `login${location.hash}`)
