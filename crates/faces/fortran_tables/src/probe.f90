! Prints `descriptors` if descriptors of actual arguments are as probe.c and the library know them. Generated modules would be wrong
! with any other, and a compiler that accepts the declarations may still pass something else.
module probed
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  implicit none
  type :: pair
    real :: first
    integer :: second(2)
  end type
  interface
    subroutine probe_native(buf, rank, element, extents, strides, good)
      import
      type(*), dimension(..), intent(in) :: buf
      integer, intent(in) :: rank, element, extents(*), strides(*)
      integer, intent(inout) :: good
    end subroutine
    subroutine probe_c(buf, rank, element, extents, strides, good) bind(C, name="probe_c_")
      import
      type(*), dimension(..), asynchronous :: buf
      integer, intent(in) :: rank, element, extents(*), strides(*)
      integer, intent(inout) :: good
    end subroutine
  end interface
contains
  subroutine of_shape(array, good)
    integer, asynchronous, intent(inout) :: array(:, 2:)
    integer, intent(inout) :: good
    call probe_native(array(2:, ::2), 2, 4, [3, 2], [8, 64], good)
    call probe_c(array(2:, ::2), 2, 4, [3, 2], [8, 64], good)
  end subroutine
  subroutine of_size(array, good)
    integer, asynchronous, intent(inout) :: array(8, *)
    integer, intent(inout) :: good
    call probe_native(array, 2, 4, [8, -1], [4, 32], good)
    call probe_c(array, 2, 4, [8, -1], [4, 32], good)
    call probe_native(array(1:8:3, 1:2), 2, 4, [3, 2], [12, 32], good)
    call probe_c(array(1:8:3, 1:2), 2, 4, [3, 2], [12, 32], good)
  end subroutine
end module

program probe
  use probed
  implicit none
  integer, asynchronous, target :: a(8, 4), scalar
  integer, pointer :: pointed(:, :)
  integer, allocatable :: seven(:, :, :, :, :, :, :)
  type(pair), asynchronous, target :: pairs(5)
  character(len=3), asynchronous :: texts(4)
  integer :: good
  good = 0
  call probe_native(scalar, 0, 4, [0], [0], good)
  call probe_c(scalar, 0, 4, [0], [0], good)
  call probe_native(a, 2, 4, [8, 4], [4, 32], good)
  call probe_c(a, 2, 4, [8, 4], [4, 32], good)
  call probe_native(a(1:8:2, :), 2, 4, [4, 4], [8, 32], good)
  call probe_c(a(1:8:2, :), 2, 4, [4, 4], [8, 32], good)
  call probe_native(a(8:1:-3, 4:1:-1), 2, 4, [3, 4], [-12, -32], good)
  call probe_c(a(8:1:-3, 4:1:-1), 2, 4, [3, 4], [-12, -32], good)
  call probe_native(a(5, :), 1, 4, [4], [32], good)
  call probe_c(a(5, :), 1, 4, [4], [32], good)
  call probe_native(a(3:2, :), 2, 4, [0, 4], [4, 32], good)
  call probe_c(a(3:2, :), 2, 4, [0, 4], [4, 32], good)
  pointed => a(2::2, 1::3)
  call probe_native(pointed, 2, 4, [4, 2], [8, 96], good)
  call probe_c(pointed, 2, 4, [4, 2], [8, 96], good)
  call probe_native(pairs(5:1:-2), 1, 12, [3], [-24], good)
  call probe_c(pairs(5:1:-2), 1, 12, [3], [-24], good)
  ! A copy of the component would be wrong where it is used after the call.
  call probe_c(pairs%first, 1, 4, [5], [12], good)
  call probe_native(texts(::3), 1, 3, [2], [9], good)
  call probe_c(texts(::3), 1, 3, [2], [9], good)
  call of_shape(a(1:8:2, :), good)
  call of_size(a, good)
  allocate(seven(2, 2, 2, 2, 2, 2, 2))
  call probe_native(seven(:, 2:1:-1, :, :, :, :, 1), 6, 4, [2, 2, 2, 2, 2, 2], [4, -8, 16, 32, 64, 128], good)
  call probe_c(seven(:, 2:1:-1, :, :, :, :, 1), 6, 4, [2, 2, 2, 2, 2, 2], [4, -8, 16, 32, 64, 128], good)
  if (good == 27) print '(a)', 'descriptors'
end program
