import { options, render } from 'preact'
import { Page } from './page.tsx'

// A task of its own: reading a message with 5,000 holders takes long enough.
options.debounceRendering = setTimeout
const at = document.querySelector('#page')
if (at) render(<Page />, at)
