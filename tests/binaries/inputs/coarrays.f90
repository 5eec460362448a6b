! Coarrays: puts and gets around a ring, strided sections, events, locks, atomic operations and collective subroutines. Image 1 prints
! `images: N, wrong: 0`.
program coarrays
  use, intrinsic :: iso_fortran_env
  implicit none
  integer, parameter :: length = 1000
  integer :: values(length)[*], table(8, 8)[*], got(length), image, images, left, right, at, wrong = 0, total
  integer(atomic_int_kind) :: counter[*] = 0, seen
  type(event_type) :: arrived[*]
  type(lock_type) :: guard[*]
  integer :: guarded[*]
  integer, allocatable :: grows(:)[:]

  image = this_image()
  images = num_images()
  left = merge(images, image - 1, image == 1)
  right = merge(1, image + 1, image == images)

  values = 0
  sync all
  values(:)[right] = [(1000 * image + at, at = 1, length)]
  sync all
  call check(all(values == [(1000 * left + at, at = 1, length)]))
  got = values(:)[right]
  call check(all(got == [(1000 * image + at, at = 1, length)]))

  table = image
  sync all
  table(2:8:3, 1:7:2)[right] = reshape([(-image, at = 1, 12)], [3, 4])
  sync all
  call check(count(table == -left) == 12 .and. count(table == image) == 52)
  call check(all(table(2:8:3, 1:7:2)[right] == -image))

  event post (arrived[right])
  event wait (arrived)

  do at = 1, 10
    call atomic_add(counter[1], image)
  end do
  sync all
  call atomic_ref(seen, counter[1])
  call check(seen == 10 * images * (images + 1) / 2)

  guarded = 0
  sync all
  do at = 1, 10
    lock (guard[1])
    guarded[1] = guarded[1] + 1
    unlock (guard[1])
  end do
  sync all
  call check(guarded[1] == 10 * images)

  total = image
  call co_sum(total)
  call check(total == images * (images + 1) / 2)
  total = image
  call co_max(total, result_image=1)
  if (image == 1) call check(total == images)
  call co_broadcast(total, source_image=1)
  call check(total == images)

  allocate (grows(image_length())[*])
  grows = image
  sync all
  call check(all(grows(:)[left] == left))
  deallocate (grows)

  call co_sum(wrong, result_image=1)
  if (image == 1) print '(a, i0, a, i0)', 'images: ', images, ', wrong: ', wrong
contains
  integer function image_length()
    image_length = 100
  end function

  subroutine check(is_right)
    logical, intent(in) :: is_right
    if (is_right) return
    wrong = wrong + 1
    print '(a, i0)', 'a wrong result in image ', image
  end subroutine
end program
